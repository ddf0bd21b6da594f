"""/init: have the model write the project's instruction file, or update the existing one."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import CommandOutcome
from tenuto.config.instructions import NAMES
from tenuto.config.project import project_root
from tenuto.core.runtime import Runtime
from tenuto.protocol.part import TextPart

CONTENT = """It is read at the start of every session, by people too. Say what cannot be seen from one or two files:
- the commands: build, test (all of it, and one test alone), lint, run;
- the architecture: the main parts, where they lie, how data flows between them;
- rules of this project that are easily broken: conventions, generated files, things never to be done, traps.
Look before you write: the README, the build and CI files, the tests' layout, rules for other agents (.cursorrules,
.github/copilot-instructions.md), a few files of each part. Try a command before you name it where that is cheap.
Leave out what any project has, lists of files, and what nobody checks. At most 80 lines. Invent nothing."""
WRITE = "Write {path}, the instruction file of this project for coding agents."
IMPROVE = (
    "Look over {path}, the instruction file of this project for coding agents: check what it says against the "
    "project, correct what is not true any more, add what is missing, cut what tells nothing. Keep what people have "
    "decided there."
)


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Send the prompt, with what stands behind the command; while something runs it is queued, like every prompt."""
    path, exists = instruction_file(project_root(runtime.live.session.cwd))
    task = (IMPROVE if exists else WRITE).format(path=path)
    wishes = f"\n\nBeside that: {argument}" if argument else ""
    await runtime.submit_prompt((TextPart(text=f"{task}\n\n{CONTENT}{wishes}"),), origin="command")
    return []


def instruction_file(root: Path) -> tuple[Path, bool]:
    """Return the project's instruction file, and whether it is there already."""
    present = next((root / name for name in NAMES if (root / name).is_file()), None)
    return (present, True) if present is not None else (root / NAMES[0], False)
