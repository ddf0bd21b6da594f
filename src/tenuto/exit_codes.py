"""Exit codes of the program (DESIGN section 9).

The text under each makes its row in `docs/reference/exit-codes.md` and the README (`scripts/manual`).
"""

from __future__ import annotations

OK = 0
"""Done: the session is idle and nothing failed."""
FAILED = 1
"""Failed, or a slash command that could not be done; the reason is on standard error. Also when standard output closes
before the end (`| head`): the run stops at once, and the session is saved."""
BAD_USAGE = 2
"""Bad usage: a wrong option, a model without a key, a session that does not exist, a standard output that is closed
from the start."""
CUT_OFF = 3
"""Cut off: the model's output limit ended its answer four times in a row; what came of it is on standard output."""
LIMIT_REACHED = 4
"""A limit was reached: turns, cost or time."""
CALLS_REFUSED = 5
"""Done, but calls were refused: each has a line on standard error; the last line names the mode that allows them."""
DECLINED = 6
"""The model, or a filter of its provider, declined to answer."""
SIGNAL = 128  # and the number of the signal that ended it; no row of its own
INTERRUPTED = SIGNAL + 2
"""Interrupted by a signal. A second signal ends the process at once (128 and its number), and so does the first after
three seconds."""
