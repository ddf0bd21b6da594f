"""What the editor needs of the disk: history, drafts, images, completions, the branch. No key waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tenuto.command.outcome import Choice, Say
from tenuto.command.registry import Command
from tenuto.config.project import read_branch
from tenuto.guard.git import GitFailedError, GitRefusedError, open_git
from tenuto.guard.terminal import sanitize_line
from tenuto.private_files import replace_file
from tenuto.protocol.part import ImagePart
from tenuto.text.writable import to_json
from tenuto.tui.complete.commands import Target, complete_argument, complete_command, complete_resource, find_target
from tenuto.tui.complete.history import NO_EXTRAS, Extras, PromptHistory
from tenuto.tui.complete.paste import Pastes
from tenuto.tui.complete.paths import PathIndex
from tenuto.tui.images import Attacher
from tenuto.tui.state import intents
from tenuto.tui.state.effects import Complete, Remember
from tenuto.tui.state.intents import CompletionItem, Intent
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


SHORT_HASH = 8
GIT_SECONDS = 5.0
MIN_SECONDS = 2.0
"""Between two looks."""
COST_FACTOR = 10
STATUS = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")


class BranchWatch:
    """Looks at the branch, off the loop: not twice in two seconds, and seldom where looking takes long.

    `clock` is seconds. `refused` says why git is not asked, empty where it is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = float("-inf")
        self._looking = False
        self.refused = ""

    @property
    def due(self) -> bool:
        """Whether a look would be worth it, should something have changed."""
        return not self._looking and self._clock() >= self._next

    async def look(self, cwd: Path) -> tuple[str, bool]:
        """Return the branch and whether something is not as committed."""
        began, self._looking, branch = self._clock(), True, ""
        try:
            branch = await asyncio.to_thread(read_branch, cwd, SHORT_HASH)
            dirty = await asyncio.to_thread(is_dirty, cwd) if branch else False
            self.refused = ""
            return branch, dirty
        except GitRefusedError as refused:
            self.refused = str(refused)
            return branch, False
        finally:
            ended = self._clock()
            self._looking = False
            self._next = ended + max(MIN_SECONDS, COST_FACTOR * (ended - began))


def is_dirty(cwd: Path) -> bool:
    """Say whether tracked files are not as committed. Raises `GitRefusedError`; where git cannot say it soon: no."""
    try:
        git = open_git(cwd)
        ran = git.run(git.root, *STATUS, seconds=GIT_SECONDS) if git is not None else None
    except GitFailedError:
        return False
    return ran is not None and ran.returncode == 0 and bool(ran.stdout)


OWN_SECONDS = 2.0
"""So long what users and projects bring is not looked for again."""
DRAFT_PAUSE = 1.0
"""Seconds without a key after which a draft is written."""
DRAFT_LATEST = 5.0
"""Seconds after which it is written although the user types on."""
NO_DRAFT = ("", (), "")
"""Text, images and what was put aside."""

WITHOUT_GIT = "The branch shows without a sign of changes, and @ lists what lies on the disk."


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None:
        """Let it not happen."""
        ...


class Desk:
    """Works beside the loop and hands what it finds to the machine.

    `spawn` runs a coroutine beside everything else, `call_later` calls a function after so many seconds, `arguments`
    finds the values that a command takes, `own_commands` what users and projects bring as such, `resources` what MCP
    servers have to be mentioned. `clock` is seconds.
    Without `keeps_texts` no draft and no prompt is written, and no earlier draft is taken; earlier prompts are there.
    """

    def __init__(
        self,
        home: Path,
        state: UiState,
        handle: Callable[[Intent], None],
        *,
        keeps_texts: bool = True,
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
        clock: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], Timer],
        arguments: Callable[[str, str], Awaitable[tuple[Choice, ...]]],
        own_commands: Callable[[], Awaitable[tuple[Command, ...]]],
        resources: Callable[[], Awaitable[tuple[Choice, ...]]],
    ) -> None:
        self.images = Attacher(self._keep_image, handle, spawn)
        self._home = home
        self._keeps_texts = keeps_texts
        self._state = state
        self._branch = BranchWatch(clock)
        self._told: set[str] = set()
        self._handle = handle
        self._spawn = spawn
        self._clock = clock
        self._call_later = call_later
        self._arguments = arguments
        self._own_commands = own_commands
        self._resources = resources
        self._own_due = float("-inf")
        self._asked: tuple[int, Target] | None = None
        self._history: PromptHistory | None = None
        self._history_lock = asyncio.Lock()
        self._paths: PathIndex | None = None
        self._listing: asyncio.Future[bool] | None = None
        self._too_early: Complete | None = None
        self._drafts = DraftFiles(home)
        self._draft_session = ""
        self._seen: tuple[object, ...] = NO_DRAFT
        self._draft_timer: Timer | None = None
        self._draft_latest = 0.0
        self._writing = asyncio.Lock()

    def enter(self, session_id: str, cwd: Path, *, is_read_only: bool = False) -> None:
        """Another session, maybe another project. Of one that is only read the draft is whose it is open with."""
        self._history = PromptHistory(self._home, cwd)
        if self._paths is None or self._paths.root != cwd:
            self._paths = PathIndex(cwd, self._clock)
            self._listing = None
        if self._too_early is not None and self._too_early.generation == self._state.completion_generation:
            self.complete(self._too_early)
        self._too_early = None
        self._spawn(self._load_history(self._history), "history")
        if self._keeps_texts:
            self._spawn(self._load_draft("" if is_read_only else session_id, str(cwd)), "draft")
        self.read_branch()

    def close(self) -> None:
        """Keep the draft as it is at the end."""
        if self._draft_timer is not None:
            self._draft_timer.cancel()
        if self._draft_session:
            self._drafts.write(self._draft_session, draft_of(self._state))

    # --- history, branch ---

    async def _load_history(self, history: PromptHistory) -> None:
        async with self._history_lock:
            past = await asyncio.to_thread(history.load)
        self._handle(intents.HistoryLoaded(past.texts, past.own, past.extras))

    def remember(self, effect: Remember) -> None:
        """Write a prompt to the history."""
        self._spawn(self._remember(effect), "remember")

    async def _remember(self, effect: Remember) -> None:
        if self._history is None or not self._keeps_texts:
            return
        async with self._history_lock:
            try:
                await asyncio.to_thread(self._history.append, effect.text, time.time(), effect.extras)
            except OSError as error:
                self._handle(Say(f"The prompt history is not being saved: {error}", "warning"))

    def glance_at_branch(self) -> None:
        """Look at the branch if nobody did for a while: a tool may have changed something."""
        if self._branch.due:
            self.read_branch()

    def read_branch(self) -> None:
        """Look which branch is checked out, and whether something is not as committed."""
        self._spawn(self._read_branch(), "branch")

    async def _read_branch(self) -> None:
        cwd = self._state.status.cwd
        branch, dirty = await self._branch.look(Path(cwd)) if cwd else ("", False)
        if cwd == self._state.status.cwd:
            self._handle(intents.BranchRead(branch, dirty))
        if self._branch.refused and self._branch.refused not in self._told:
            self._told.add(self._branch.refused)
            said = f"Git is not asked about this project: {sanitize_line(self._branch.refused)}. {WITHOUT_GIT}"
            self._handle(Say(said, "info"))

    # --- drafts ---

    async def _load_draft(self, session_id: str, cwd: str) -> None:
        """Bring the session's draft back; from now on the draft is kept for it. Without an id for none."""
        async with self._writing:
            left, self._draft_session = self._draft_session, session_id
            if not session_id:
                return
            stored = await asyncio.to_thread(self._drafts.take, session_id, cwd, left)
            if left != session_id:
                await asyncio.to_thread(self._take_along, left, session_id, draft_of(self._state))
        if stored is not None and not stored.empty:
            at = time.strftime(
                "%H:%M" if time.time() - stored.at < 43_200 else "%d %b %H:%M", time.localtime(stored.at)
            )
            self._handle(intents.DraftRestored(stored.text, at, stored.extras, stored.stash, stored.stash_extras))

    def _take_along(self, left: str, session_id: str, draft: StoredDraft) -> None:
        """What is in the editor belongs to this session from now on, on the disk as well."""
        if not draft.empty:
            self._drafts.write(session_id, draft)
        self._drafts.write(left, StoredDraft())

    def note_draft(self) -> None:
        """The state may have changed: if the draft did, it is written after a pause. One that was sent goes at once."""
        state = self._state
        seen = (state.draft.text, state.draft.images, state.ladder.stash)
        if seen == self._seen:
            return
        self._seen = seen
        if seen == NO_DRAFT:
            self.keep_draft()  # whoever is killed now would find it again, and send it twice
        elif self._draft_timer is None:
            self._draft_latest = self._clock() + DRAFT_LATEST
            self._draft_timer = self._call_later(DRAFT_PAUSE, self._draft_due)

    def _draft_due(self) -> None:
        self._draft_timer = None
        rest = min(self._state.draft.changed_at + DRAFT_PAUSE, self._draft_latest) - self._clock()
        if rest > 0:
            self._draft_timer = self._call_later(rest, self._draft_due)
        else:
            self.keep_draft()

    def keep_draft(self) -> None:
        """Write the draft now, beside everything else."""
        if self._draft_session:
            self._spawn(self._write_draft(draft_of(self._state)), "draft")

    async def _write_draft(self, draft: StoredDraft) -> None:
        async with self._writing:
            await asyncio.to_thread(self._drafts.write, self._draft_session, draft)

    # --- images ---

    def _keep_image(self, data: bytes, name: str) -> ImagePart:
        """Put an image of the draft on the disk; where nothing is to stay, into the session that goes at the end."""
        from tenuto.core.agent.attachments import Attachments, keep_image
        from tenuto.session.store import Store

        if self._keeps_texts:
            return Attachments(self._home).keep(data, name)
        if not self._state.status.directory:
            raise OSError("the session is not open yet")
        return keep_image(Store(Path(self._state.status.directory)), data, name)

    # --- completion ---

    def complete(self, effect: Complete) -> None:
        """Answer at once where no disk is needed, else from a thread."""
        if effect.in_shell:
            self._spawn(self._complete_shell(effect), "complete")
            return
        target = find_target(effect.text, effect.cursor, self._state.own_commands)
        if target is None:
            return
        if target.kind == "command":
            self._asked = (effect.generation, target)
            self._offer(effect.generation, target, complete_command(target.query, self._state.own_commands))
            if self._clock() >= self._own_due:
                self._spawn(self._complete_own(), "complete")
        elif target.kind == "argument":
            self._spawn(self._complete_argument(effect.generation, target), "complete")
        elif self._paths is None:  # typed before it was known where
            self._too_early = effect
        else:
            self._spawn(self._complete_path(effect.generation, target, self._paths), "complete")

    async def _complete_own(self) -> None:
        """Look what users and projects bring; offer again, for what is typed by now, where that is something else."""
        self._own_due = self._clock() + OWN_SECONDS
        own = await self._own_commands()
        if own != self._state.own_commands and self._asked is not None:
            self._handle(intents.OwnCommandsFound(own))
            generation, target = self._asked
            if generation == self._state.completion_generation:
                self._offer(generation, target, complete_command(target.query, own))

    async def _complete_path(self, generation: int, target: Target, index: PathIndex) -> None:
        """Answer from the listing that there is; when that is old, again from a new one."""
        resources = complete_resource(await self._resources(), target.query)
        items = await asyncio.to_thread(index.complete, target.query)
        self._offer(generation, target, (*items, *resources))
        if not index.is_stale or generation != self._state.completion_generation:
            return
        if await self._refresh(index) and generation == self._state.completion_generation:
            items = await asyncio.to_thread(index.complete, target.query)
            self._offer(generation, target, (*items, *resources))

    async def _refresh(self, index: PathIndex) -> bool:
        """Read a listing again, once for all the keys that are typed meanwhile; say whether it has changed."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.ensure_future(asyncio.to_thread(index.refresh))
        return await asyncio.shield(self._listing)

    async def _complete_shell(self, effect: Complete) -> None:
        from tenuto.tui.complete.paths import complete_shell, find_shell_target

        target = find_shell_target(effect.text, effect.cursor)
        if target is None or self._paths is None:
            return
        items = await asyncio.to_thread(complete_shell, self._paths.root, target, os.environ)
        self._handle(intents.CompletionOffered(effect.generation, target.start, target.end, items, at_once=True))

    async def _complete_argument(self, generation: int, target: Target) -> None:
        choices = await self._arguments(target.command, target.query)
        if target.command == "theme":  # the runtime does not know which themes there are
            from tenuto.tui.themes import own_choices

            choices += await asyncio.to_thread(own_choices, self._home)
        if generation == self._state.completion_generation:
            self._offer(generation, target, complete_argument(choices, target.query))

    def _offer(self, generation: int, target: Target, items: tuple[CompletionItem, ...]) -> None:
        self._handle(intents.CompletionOffered(generation, target.start, target.end, items))
