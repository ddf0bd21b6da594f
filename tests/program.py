"""The program under test, as the start of a command line: this Python and the sources of this checkout."""

import sys

PYTHON = sys.executable
TENUTO = (PYTHON, "-m", "tenuto")
