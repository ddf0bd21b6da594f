"""What stands on the first screen of a new session: name, version, model, directory, and a tip that changes.

It is made when the session is open, behind the first frame, and goes with the first prompt.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tenuto.private_files import make_directory, replace_file
from tenuto.tui.chrome import home_relative
from tenuto.version import __version__

COUNTER = Path("told") / "tips"
"""How many tips were shown, in Tenuto's home."""
TIPS = (
    "/compact --preview shows what a compaction would keep, before anything happens.",
    "@ names a file that goes along with the prompt; @app.py:10-20 sends those lines.",
    "!command runs in your shell and the model sees the result; !!command stays between you and the shell.",
    "Esc Esc on the empty prompt goes back to an earlier message, with the files as they were.",
    "# TEXT adds a line to the project's instructions, or to yours.",
    "/review has the agent look over what is not committed; it changes nothing.",
    "Alt+P chooses the model, Alt+T how hard it thinks, Shift+Tab what needs your approval.",
    "What you type while something runs is queued; Ctrl+S sends it at the next step instead.",
    "/pin keeps a text word for word through every compaction.",
    "/recall finds what was said or done, however long ago; the agent can do that too.",
    "/tree shows the session with its branches; go on from any entry of it.",
    "Ctrl+G writes the prompt in your own editor.",
    "/undo takes the last turn's edits of files back.",
    "tenuto doctor says what is missing on this machine, and what to do about it.",
    '`ui.editing = "vim"` in the settings gives the prompt vi\'s keys; `ui.tips = false` ends these lines.',
)


def welcome_text(model: str, cwd: str, home: str, tip: str) -> str:
    """Return the lines; `home` is the user's, and an empty tip has none."""
    lines = [f"Tenuto {__version__}", f"{model} · {home_relative(cwd, home)}", *([f"Tip: {tip}"] if tip else [])]
    return "\n".join(lines)


def next_tip(home: Path) -> str:
    """Return the tip whose turn it is, and count it; where nothing can be written it is the same one each time."""
    try:
        shown = int((home / COUNTER).read_text()[:20])
    except (OSError, ValueError):
        shown = 0
    with contextlib.suppress(OSError):
        make_directory((home / COUNTER).parent)
        replace_file(home / COUNTER, str(shown + 1).encode())
    return TIPS[shown % len(TIPS)]
