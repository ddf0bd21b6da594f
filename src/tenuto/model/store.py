"""The small JSON files that the model room keeps in `$TENUTO_HOME`: mode 0600, replaced as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from tenuto.private_files import make_directory, replace_file
from tenuto.protocol.model import ModelFacts

Value = TypeVar("Value")
LIST_MAX_AGE = 7 * 24 * 3600.0
"""Seconds for which a provider's list of models is not asked for again."""
LEARNED_MAX_AGE = 7 * 24 * 3600.0
"""Seconds for which a window that a refusal named is believed without another refusal."""
LOCAL_LIST_MAX_AGE = 60.0
"""The same for a server on this machine, which may have been started again with another window."""


def read_json(path: Path, kind: type[Value]) -> Value | None:
    """Return the file's content, `None` when it is missing, unreadable or something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def write_json(path: Path, value: object) -> None:
    """Replace the file in one step; mode 0600 under any umask, its folder 0700. Raises `OSError`."""
    make_directory(path.parent)
    replace_file(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


class LearnedWindow(msgspec.Struct, frozen=True):
    """A window in tokens that a refusal named, and when (seconds since the epoch)."""

    tokens: int
    learned: float = 0.0


class LearnedWindows:
    """`models.json`: windows that a provider's refusal named; by provider, model and base URL.

    One that is older than `LEARNED_MAX_AGE` counts no more: the provider may serve the model with another by now.
    """

    def __init__(self, home: Path, clock: Callable[[], float]) -> None:
        self.path = home / "models.json"
        self._clock = clock
        self._windows: dict[str, LearnedWindow] | None = None

    def get(self, model_id: str, base_url: str) -> LearnedWindow | None:
        """Return the learned window, `None` when nothing was learned of late."""
        found = self._load().get(_key(model_id, base_url))
        return found if found is not None and self._clock() - found.learned < LEARNED_MAX_AGE else None

    def learn(self, model_id: str, base_url: str, limit: int) -> bool:
        """Keep `limit` if it is lower than what was learned before; whether it is. A failing disk is no failure."""
        self._windows = None
        known = self.get(model_id, base_url)
        if known is not None and known.tokens <= limit:
            return False
        self._load()[_key(model_id, base_url)] = LearnedWindow(limit, self._clock())
        self._store()
        return True

    def forget(self, model_id: str, base_url: str) -> None:
        """Drop what was learned of a model."""
        self._windows = None
        if self._load().pop(_key(model_id, base_url), None) is not None:
            self._store()

    def _store(self) -> None:
        with contextlib.suppress(OSError):
            write_json(self.path, {"windows": self._load()})

    def _load(self) -> dict[str, LearnedWindow]:
        if self._windows is None:
            found = read_json(self.path, dict[str, dict[str, LearnedWindow | int]]) or {}
            self._windows = {
                key: LearnedWindow(window) if isinstance(window, int) else window  # an older version wrote no time
                for key, window in found.get("windows", {}).items()
            }
        return self._windows


def _key(model_id: str, base_url: str) -> str:
    return f"{model_id} {base_url}".strip()


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said of its models, and when (seconds since the epoch)."""

    fetched: float
    models: tuple[ModelFacts, ...]

    def find(self, name: str) -> ModelFacts | None:
        """Return the model with this name."""
        return next((facts for facts in self.models if facts.name == name), None)


def list_path(home: Path, provider: str, base_url: str) -> Path:
    """Return where the list of one provider at one address is kept."""
    readable = re.sub(r"[^\w.-]", "_", provider)[:40]
    return home / "cache" / f"models-{readable}-{hashlib.sha256(base_url.encode()).hexdigest()[:8]}.json"
