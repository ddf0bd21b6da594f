"""What one family of models has to be told and the others do not: short, and last among the parts of ours.

A line stands here only for a habit that is known of the family; what all should do is in `prompt.py`.
"""

from __future__ import annotations

from typing import assert_never

from tenuto.protocol.model import Family

CLAUDE = """\
# Your habits
- Make the smallest change that does it: no further files, options, fallbacks or reports that nobody asked for.
- A test that fails is fixed or named; never weaken it, and never write code for its cases alone."""

GPT = """\
# Your habits
- Go on until all of it is done and checked; do not hand back a plan, or ask whether to go on.
- Send look-ups that do not need each other as parallel calls, and stop looking as soon as you can act."""

GEMINI = """\
# Your habits
- Call a tool where you would describe what to do; put code into files, not into the answer.
- Keep to the change that was asked for, and do not repeat a call that has told you enough."""


def family_part(family: Family) -> str:
    """Return the part for a family; empty for models of which no habit is known."""
    match family:
        case "claude":
            return CLAUDE
        case "gpt":
            return GPT
        case "gemini":
            return GEMINI
        case "other":
            return ""
        case _:
            assert_never(family)
