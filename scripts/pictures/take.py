"""The pictures of the documentation, taken from the real program: `scripts/picture`, or only some of them by name."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.pictures.stage import Stage, on_stage
from scripts.pictures.story import DECIMALS, READ, WISH

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
MAX_BYTES = 60_000
DONE = "shall I list the orders"


def start(folder: Path) -> str:
    """The first screen, with a prompt that is not sent yet."""
    with on_stage(folder, rows=9) as stage:
        stage.screen.type(WISH)
        stage.screen.wait_for(f"❯ {WISH}")
        return stage.picture("Tenuto after the start, with a first prompt")


def conversation(folder: Path, theme: str = "dark") -> str:
    """Nine logs read, compacted, a bug fixed."""
    with on_stage(folder, "--mode", "auto", rows=49, theme=theme, slow_summary=0.02) as stage:
        _up_to_the_fixed_bug(stage)
        return stage.picture("Tenuto reads nine logs, compacts, fixes a bug and runs the tests")


def _up_to_the_fixed_bug(stage: Stage) -> None:
    stage.say(READ, "All others are right")
    stage.say("/compact", "Compacted ·")
    stage.say(WISH, DONE)


def light(folder: Path) -> str:
    """The same on a light ground."""
    return conversation(folder, "light")


def approval(folder: Path) -> str:
    """A change that is asked about."""
    with on_stage(folder, "--mode", "ask", rows=30) as stage:
        stage.send(WISH)
        stage.screen.wait_for("Allow?")
        return stage.picture("Tenuto asks before it changes a file, and shows the change")


def diff(folder: Path) -> str:
    """Old and new side by side."""
    with on_stage(folder, "--mode", "auto", columns=150, rows=32) as stage:
        stage.say(WISH, DONE)
        return stage.picture("A change side by side on a wide screen")


def compaction(folder: Path) -> str:
    """A summary being written."""
    with on_stage(folder, "--mode", "auto", rows=24, slow_summary=0.4) as stage:
        stage.say(READ, "All others are right")
        stage.send("/compact keep the order numbers")
        stage.screen.wait_until(
            lambda shown: "Compacting" in shown and "tokens · 2s" in shown, "the summary in the making"
        )
        return stage.picture("A compaction runs; Esc cancels it")


def summary(folder: Path) -> str:
    """The block of a compaction, unfolded."""
    with on_stage(folder, "--mode", "auto", rows=55, slow_summary=0.02) as stage:
        stage.say(READ, "All others are right")
        stage.say("/compact", "Compacted ·")
        stage.screen.keys("C-o")
        stage.screen.wait_for("Critical Context")
        return stage.picture("What a compaction wrote, unfolded")


def context(folder: Path) -> str:
    """What fills the window."""
    with on_stage(folder, "--mode", "auto", rows=40) as stage:
        _up_to_the_fixed_bug(stage)
        stage.send("/context")
        stage.screen.wait_for("The context over the session")
        return stage.picture("What fills the model's window, and how it grew")


def tree(folder: Path) -> str:
    """The ways that a session went."""
    with on_stage(folder, "--mode", "auto", rows=34) as stage:
        stage.say(WISH, DONE)
        stage.say(DECIMALS, "the tests stay as they are")
        stage.send("/tree")
        stage.screen.wait_for("type to filter")
        return stage.picture("The tree of a session: go back to any place, and nothing is lost")


def models(folder: Path) -> str:
    """The list of models."""
    with on_stage(folder, rows=14) as stage:
        stage.send("/model")
        stage.screen.wait_for("type to filter")
        return stage.picture("/model lists what can be used")


def sessions(folder: Path) -> str:
    """The list of sessions, with how the selected one began and ended."""
    with on_stage(folder, "--mode", "auto", rows=14) as stage:
        stage.say(WISH, DONE)
        stage.send("/new")
        stage.screen.wait_for("new session")
        stage.send("/resume")
        stage.screen.wait_for("type to filter")
        return stage.picture("/resume lists the sessions of this directory")


def inline(folder: Path) -> str:
    """The screen without a screen."""
    with on_stage(folder, "--inline", "--mode", "auto", rows=41) as stage:
        stage.say(WISH, DONE)
        return stage.picture("tenuto --inline prints into the terminal's own scrollback")


PICTURES: dict[str, Callable[[Path], str]] = {
    function.__name__: function
    for function in (
        start,
        conversation,
        light,
        approval,
        diff,
        compaction,
        summary,
        context,
        tree,
        models,
        sessions,
        inline,
    )
}


def main(names: list[str]) -> int:
    """Take the named pictures, all of them without a name; returns the exit code."""
    for name in names or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            taken = PICTURES[name](Path(folder).resolve())
        private = next((text for text in (folder, str(FOLDER.parent.parent), str(Path.home())) if text in taken), "")
        fault = f"it names {private}" if private else f"{len(taken):,} bytes" if len(taken) > MAX_BYTES else ""
        if fault:
            print(f"{name}: not written: {fault}", file=sys.stderr)
            return 1
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(taken, encoding="utf-8")
        print(f"docs/pictures/{name}.svg: {len(taken.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
