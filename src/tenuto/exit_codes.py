"""Exit codes of the program (DESIGN section 9)."""

from __future__ import annotations

OK = 0
FAILED = 1
BAD_USAGE = 2
CUT_OFF = 3
"""The answer is not whole: the model's output limit ended it again and again."""
LIMIT_REACHED = 4
"""A limit of the user's ended the run: turns, cost or time."""
CALLS_REFUSED = 5
"""It is done, as far as it was allowed."""
DECLINED = 6
"""The model, or a filter of its provider, declined to answer."""
SIGNAL = 128
"""With the number of the signal that ended it."""
INTERRUPTED = SIGNAL + 2
