"""Drafts on disk: what was being written outlives the program, however it ended.

One file a session under `$TENUTO_HOME/drafts`, 0600, written a second after the last key, every few seconds while
somebody types on, and never at a key. It is read when its session is opened again. A draft of a session in which
nothing was ever said, which nobody can open again, comes back in the next session of its project that has none. One
that begins with a space is not written.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import msgspec

from tenuto.private_files import replace_file
from tenuto.protocol.part import ImagePart
from tenuto.text.writable import to_json
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.complete.paste import Pastes
from tenuto.tui.state.state import UiState

FOLDER = "drafts"
MAX_AGE = 60 * 86_400.0
"""Seconds after which a draft is forgotten."""
MAX_BYTES = 20_000_000


class StoredDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A draft and what was put aside. `at` is seconds since the epoch, `pid` the process that wrote it."""

    cwd: str = ""
    pid: int = 0
    at: float = 0.0
    text: str = ""
    extras: Extras = NO_EXTRAS
    stash: str = ""
    stash_extras: Extras = NO_EXTRAS

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.text.strip() or self.stash.strip() or self.extras.images)


def draft_of(state: UiState) -> StoredDraft:
    """Return what is to be kept of a state."""
    text, extras = _whole(state.pastes, state.draft.text, state.draft.images)
    stash, stash_extras = _whole(state.pastes, state.ladder.stash, state.ladder.stashed_images)
    return StoredDraft(cwd=state.status.cwd, text=text, extras=extras, stash=stash, stash_extras=stash_extras)


def _whole(pastes: Pastes, shown: str, images: tuple[ImagePart, ...]) -> tuple[str, Extras]:
    if shown.startswith(" "):
        return "", NO_EXTRAS
    return pastes.expand(shown), Extras(images, pastes.folds(shown))


def keep_unopened(home: Path, cwd: Path, state: UiState) -> None:
    """Keep what was typed, and sent, before there was a session (a line that broke): the next of the project has it."""
    draft = draft_of(state)
    texts = [*(echo.text for echo in state.echoes), draft.text]
    whole = msgspec.structs.replace(draft, cwd=str(cwd), text="\n\n".join(filter(None, texts)))
    DraftFiles(home).write(f"unopened-{os.getpid()}", whole)


class DraftFiles:
    """The files. Every method touches the disk; errors of the disk cost a draft and nothing else."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / FOLDER

    def write(self, session_id: str, draft: StoredDraft) -> None:
        """Keep a session's draft; an empty one leaves no file."""
        if not session_id:
            return
        path = self._path(session_id)
        with contextlib.suppress(OSError):
            if draft.empty:
                path.unlink(missing_ok=True)
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = msgspec.structs.replace(draft, pid=os.getpid(), at=time.time())
            data = to_json(kept)
            if len(data) <= MAX_BYTES:
                replace_file(path, data)

    def take(self, session_id: str, cwd: str, left: str = "") -> StoredDraft | None:
        """Return a session's draft; where it has none, that of one in which nothing was said, which it takes over.

        What the session that was `left` just now had is in the editor still, and not taken.
        """
        own = self._read(self._path(session_id))
        if own is not None:
            return own
        newest: tuple[StoredDraft, Path] | None = None
        for path in self._old_files():
            draft = self._read(path)
            if draft is None or draft.cwd != cwd or path.stem == left or not self._is_orphan(path.stem, draft):
                continue
            if newest is None or draft.at > newest[0].at:
                newest = draft, path
        if newest is None:
            return None
        self.write(session_id, newest[0])
        if self._path(session_id).exists():
            with contextlib.suppress(OSError):
                newest[1].unlink(missing_ok=True)
        return newest[0]

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.json"

    def _old_files(self) -> list[Path]:
        """Return the drafts there are, without those that are too old, which go."""
        kept: list[Path] = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("*.json"):
                if time.time() - path.stat().st_mtime > MAX_AGE:
                    path.unlink(missing_ok=True)
                else:
                    kept.append(path)
        return kept

    def _read(self, path: Path) -> StoredDraft | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=StoredDraft)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _is_orphan(self, session_id: str, draft: StoredDraft) -> bool:
        """Whether nobody can open the session of a draft, and nobody is writing it now."""
        if any(map(_was_spoken_in, self._home.glob(f"sessions/*/{session_id}"))):
            return False
        try:
            os.kill(draft.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return draft.pid == os.getpid()


def _was_spoken_in(directory: Path) -> bool:
    """Whether a session is one that can be gone on with: of one in which nothing was said `kill -9` leaves a log."""
    from tenuto.session.library.catalog import summarise_session

    return summarise_session(directory) is not None
