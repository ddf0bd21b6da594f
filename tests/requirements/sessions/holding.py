"""A process that has a session open until its standard input ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from tenuto.session.session import Session

session = Session.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
session.close()
"""


@contextmanager
def held(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have another process hold the session open; yields that process."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        yield child
    finally:
        child.kill()
        child.communicate()
