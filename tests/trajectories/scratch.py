"""Files as far as a recording shows them: what was never shown stands there as a filler line that says so."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.trajectories.calls import Lines, Sed, Shown

FILLER = "……… line {} of {} was never shown ………"


def _filler(number: int, path: str) -> str:
    return FILLER.format(number, path)


def is_filler(line: str) -> bool:
    return line.startswith("……… line ")


class Scratch:
    """A folder that stands for the recording's own. `root` is where the recording's absolute paths begin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def at(self, path: str) -> Path:
        """Return the place of a recorded path; never one outside of the folder."""
        parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
        return self.folder.joinpath(*parts[-8:]) if parts else self.folder

    def find(self, path: str) -> Path:
        """Return the file that a relative path means: recordings name the same one with and without its root."""
        place = self.at(path)
        if not place.exists() and path and not path.startswith("/"):
            known = [one for one in self.folder.rglob(place.name) if f"/{one}".endswith(f"/{path.removeprefix('./')}")]
            return known[0] if len(known) == 1 else place
        return place

    def lines(self, place: Path) -> list[str]:
        return place.read_text(encoding="utf-8").removesuffix("\n").split("\n") if place.is_file() else []

    def write(self, place: Path, lines: Sequence[str]) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def learn(self, shown: Shown) -> list[str]:
        """Take in what an answer shows; return where that differs from what is here, which it replaces.

        Fillers take any text. A file that nobody has seen is made.
        """
        if not shown.lines:
            return []
        place = self.find(shown.path)
        lines = self.lines(place)
        length = shown.total or max(len(lines), *shown.lines)
        differences = (
            [f"{len(lines)} lines instead of {length}"] if lines and shown.total not in (None, len(lines)) else []
        )
        new = [*lines, *(_filler(number, shown.path) for number in range(len(lines) + 1, length + 1))][:length]
        for number, text in shown.lines.items():
            if number > length:
                continue
            here = new[number - 1]
            if here != text and not is_filler(here):
                differences.append(f"line {number}: {here!r} instead of {text!r}")
            new[number - 1] = text
        if new != lines:
            self.write(place, new)
        return differences


def after_lines(lines: Sequence[str], edit: Lines) -> list[str]:
    """Return the lines of a file after a replacement by number."""
    text = edit.text.split("\n") if edit.text or edit.last < edit.first else []
    return [*lines[: edit.first - 1], *text, *lines[max(edit.last, edit.first - 1) :]]


def after_sed(scratch: Scratch, edit: Sed) -> list[str] | None:
    """Return the lines after sed has worked on them, by sed itself, which may neither run nor write anything else."""
    lines = scratch.lines(scratch.find(edit.path))
    done = subprocess.run(
        ["sed", "--sandbox", *edit.words],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    return done.stdout.removesuffix("\n").split("\n") if done.returncode == 0 else None
