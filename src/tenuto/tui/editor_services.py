"""What the editor needs of the disk: history, drafts, images, completions, the branch. No key waits for it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from tenuto.command.outcome import Choice, Say
from tenuto.config.project import read_branch
from tenuto.guard.git import GitFailedError, GitRefusedError, open_git
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.commands import Target, complete_argument, complete_command, find_target
from tenuto.tui.complete.history import PromptHistory
from tenuto.tui.complete.paths import PathIndex
from tenuto.tui.drafts import DraftFiles, StoredDraft, draft_of
from tenuto.tui.images import Attacher
from tenuto.tui.state import intents
from tenuto.tui.state.effects import Complete, Remember
from tenuto.tui.state.intents import CompletionItem, Intent
from tenuto.tui.state.state import UiState

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
    finds the values that a command takes. `clock` is seconds. Without `keeps_texts` no draft and no prompt is written,
    and no earlier draft is taken; earlier prompts are there.
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
        self._history: PromptHistory | None = None
        self._history_lock = asyncio.Lock()
        self._paths: PathIndex | None = None
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
        target = find_target(effect.text, effect.cursor)
        if target is None:
            return
        if target.kind == "command":
            self._offer(effect.generation, target, complete_command(target.query))
        elif target.kind == "argument":
            self._spawn(self._complete_argument(effect.generation, target), "complete")
        elif self._paths is None:  # typed before it was known where
            self._too_early = effect
        else:
            self._spawn(self._complete_path(effect.generation, target, self._paths), "complete")

    async def _complete_path(self, generation: int, target: Target, index: PathIndex) -> None:
        """Answer from the listing that there is; when that is old, again from a new one."""
        items = await asyncio.to_thread(index.complete, target.query)
        self._offer(generation, target, items)
        if not index.is_stale or generation != self._state.completion_generation:
            return
        if await asyncio.to_thread(index.refresh) and generation == self._state.completion_generation:
            self._offer(generation, target, await asyncio.to_thread(index.complete, target.query))

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
