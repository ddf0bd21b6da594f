"""Figures on the disk while an evaluation runs: a line for each session, so that one that was killed can go on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tenuto.evaluation.driving import Case, Figures
from tenuto.text.writable import to_json

SESSIONS = "sessions.jsonl"


class StoreError(Exception):
    """A folder cannot be used; the text says why, for a user."""


class Store:
    """What was measured, in a folder. Raises `StoreError` when that cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / SESSIONS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self._file.read_bytes().split(b"\n") if self._file.is_file() else []
            self._known = dict(_read(lines))
            if lines and lines[-1]:  # a line that was being written when the program ended
                with self._file.open("ab") as file:
                    file.write(b"\n")
        except OSError as error:
            raise StoreError(f"{folder} cannot be used: {error.strerror or error}") from error

    def find(self, case: Case) -> Figures | None:
        """Return what was measured of a case before."""
        return self._known.get(case)

    def add(self, figures: Figures) -> None:
        """Write what was measured of a session."""
        self._known[figures.case] = figures
        try:
            with self._file.open("ab") as file:
                file.write(to_json(figures) + b"\n")
        except OSError as error:
            raise StoreError(f"{self._file} cannot be written: {error.strerror or error}") from error

    def write(self, name: str, text: str) -> None:
        """Write a report beside the figures."""
        try:
            (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.folder / name} cannot be written: {error.strerror or error}") from error


def _read(lines: Iterable[bytes]) -> Iterable[tuple[Case, Figures]]:
    for line in lines:
        try:
            figures = msgspec.json.decode(line, type=Figures)
        except msgspec.MsgspecError:
            continue
        yield figures.case, figures
