"""Exit codes of the program (DESIGN section 9); 3 and 4 are kept for runs that a limit ends."""

from __future__ import annotations

OK = 0
FAILED = 1
BAD_USAGE = 2
CALLS_REFUSED = 5
"""It is done, as far as it was allowed."""
SIGNAL = 128
"""With the number of the signal that ended it."""
INTERRUPTED = SIGNAL + 2
