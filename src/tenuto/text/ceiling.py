"""How long one tool result may be: one definition for the tools that make it and for the view that shows it (seed 001).

Characters, by the seed's names. A token is taken for four characters here: a bound has to be the same every time, and
what is really in a text is the business of the estimate.
"""

from __future__ import annotations

from math import floor

HARD_MAX_TOOL_RESULT_CHARS = 400_000
"""No result is longer than this, whatever the window; also where nobody knows the window."""
MIN_KEEP_CHARS = 2_000
"""Whatever is shortened keeps this much, so that the model can tell what it was."""
MAX_TOOL_RESULT_CONTEXT_SHARE = 0.3
"""Of the window: what one result may take."""
CHARS_PER_TOKEN = 4


def calculate_max_tool_result_chars(context_window_tokens: int) -> int:
    """Return the most characters that one result may have in a window of so many tokens."""
    max_tokens = floor(context_window_tokens * MAX_TOOL_RESULT_CONTEXT_SHARE)
    return min(max_tokens * CHARS_PER_TOKEN, HARD_MAX_TOOL_RESULT_CHARS)


def result_ceiling(window: int | None) -> int:
    """Return the same where the window may be unknown (`None`) or so small that too little would be left."""
    if window is None:
        return HARD_MAX_TOOL_RESULT_CHARS
    return max(calculate_max_tool_result_chars(window), MIN_KEEP_CHARS)
