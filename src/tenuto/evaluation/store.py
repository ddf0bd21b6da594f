"""Figures on the disk while an evaluation runs: a line for each session, so that one that was killed can go on."""

from __future__ import annotations

from pathlib import Path

from tenuto.engine.record import Record, RecordTakenError
from tenuto.evaluation.driving import Case, Figures

SESSIONS = "sessions.jsonl"


class StoreError(Exception):
    """A folder cannot be used; the text says why, for a user."""


class Store:
    """What was measured, in a folder. Raises `StoreError` when that cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._record: Record[Case, Figures] = Record(folder / SESSIONS, Figures, lambda figures: figures.case)
        except RecordTakenError as error:
            raise StoreError(str(error)) from error
        except OSError as error:
            raise StoreError(f"{folder} cannot be used: {error.strerror or error}") from error

    @property
    def faults(self) -> list[str]:
        """A text on each line that cannot be read; its session is measured again."""
        return self._record.faults

    def find(self, case: Case) -> Figures | None:
        """Return what was measured of a case before."""
        return self._record.latest.get(case)

    def add(self, figures: Figures) -> None:
        """Write what was measured of a session."""
        try:
            self._record.append(figures)
        except OSError as error:
            raise StoreError(f"{self._record.path} cannot be written: {error.strerror or error}") from error

    def write(self, name: str, text: str) -> None:
        """Write a report beside the figures."""
        try:
            (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self.folder / name} cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        """Let another process have the folder."""
        self._record.close()
