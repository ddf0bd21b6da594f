"""The life of a session's hooks: found and read, told of its start, of compactions and questions, and of its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tenuto.config.plugins.manifest import plugin_command, plugin_variables
from tenuto.config.project import project_root
from tenuto.core.hooks.asking import ask, ask_at_childs_end
from tenuto.core.hooks.running import run_hook
from tenuto.core.start import Start
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.extension.hooks.answers import Finished, Heard
from tenuto.extension.hooks.commands import HookCommands
from tenuto.extension.hooks.files import EventName, HookCommand
from tenuto.extension.hooks.trusting import HookTrust
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ChildEndedEvent,
    HooksRunningEvent,
    TaskSettledEvent,
    TaskStartedEvent,
)
from tenuto.text.figures import plural

if TYPE_CHECKING:
    from tenuto.config.project import HookFile
    from tenuto.protocol.message import CompactionEntry
    from tenuto.session.session import Session

StartSource = Literal["startup", "resume", "clear", "compact"]
EndReason = Literal["clear", "resume", "other"]
END_SECONDS = 5.0
"""Seconds that hooks have at most at the end of a session."""
IDLE_SECONDS = 60.0
"""So long nothing happens after a turn before hooks are told that the user is waited for, as in Claude Code."""
MOMENT = 1.0
"""Seconds that a hook may take before the status line names it."""
UNWAITED: frozenset[EventName] = frozenset({"Notification", "SubagentStop"})
"""Events at which nothing waits for the hooks."""


def make_hooks(files: Sequence[HookFile], session: Session, start: Start) -> HookCommands:
    """Return the hooks of a session that is being opened; their files are read beside everything else."""

    async def run(command: HookCommand, given: bytes, timeout: float) -> Finished:
        project, plugin = str(project_root(session.cwd)), command.file.plugin
        if plugin is not None and not plugin.is_dir():
            return Finished()  # removed meanwhile: what a shell says of a missing script must not block anything
        environ = {**start.environ, "CLAUDE_PROJECT_DIR": project, "TENUTO_PROJECT_DIR": project}
        text = command.command
        if command.file.root is not None:
            environ["PYTHONPYCACHEPREFIX"] = (
                os.devnull
            )  # what was trusted is the source, and no compiled file beside it
        if plugin is not None:
            environ |= plugin_variables(plugin)
            text = plugin_command(text, plugin)
        records = session.store.processes
        return await run_hook(text, given, cwd=session.cwd, environ=environ, records=records, timeout=timeout)

    return HookCommands(files, run, HookTrust(session.cwd, start.home).verdicts)


def begin_session(live: LiveSession, source: StartSource) -> None:
    """Tell the hooks that the session is open; the first request waits for what they have to say."""
    hooks = live.hooks
    if hooks is None:
        return
    hooks.report_with(live.warn, _Running(live).watch)
    hooks.owe(ask(live, "SessionStart", {"source": source}, names=(source,)))
    listener = _Listener(live)
    live.on_leave.extend((live.bus.subscribe(listener.note), listener.rest))


async def follow_trust(live: LiveSession) -> None:
    """Let the hooks of the project run that the user trusts by now, and no others; new ones hear of the start."""
    hooks = live.hooks
    if hooks is None:
        return
    await hooks.ready()
    if new := await hooks.judge():
        live.notify(f"{plural(len(new), 'hook')} of this project may run now")
        hooks.owe(ask(live, "SessionStart", {"source": "startup"}, names=("startup",), among=new))


class _Running:
    """The hook commands that the work waits for longer than a moment."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._names: list[str] = []

    @contextmanager
    def watch(self, command: HookCommand) -> Generator[None]:
        """Tell the user of a command once it has run for a moment, and of its end."""
        if command.event in UNWAITED:
            yield
            return
        due = asyncio.get_running_loop().call_later(MOMENT, self._change, self._names.append, command.name)
        try:
            yield
        finally:
            due.cancel()
            if command.name in self._names:
                self._change(self._names.remove, command.name)

    def _change(self, change: Callable[[str], None], name: str) -> None:
        change(name)
        self._live.bus.publish(HooksRunningEvent(session_id=self._live.id, names=tuple(self._names)))


def note_compaction(services: SessionServices, entry: CompactionEntry, trigger: str) -> None:
    """Tell the hooks of a compaction that is on disk; the next request waits for what they have to say."""
    if services.hooks is not None:
        services.hooks.owe(_after_compaction(services, entry, trigger))


async def _after_compaction(services: SessionServices, entry: CompactionEntry, trigger: str) -> Heard:
    details = {"trigger": trigger, "compact_summary": entry.summary}
    first = await ask(services, "PostCompact", details, names=(trigger,))
    second = await ask(services, "SessionStart", {"source": "compact"}, names=("compact",))
    return Heard(tuple(answer for heard in (first, second) if heard is not None for answer in heard.answers))


class _Listener:
    """Tells the hooks that the user is asked something or waited for, or that a sub-agent ended without an answer."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._due: asyncio.TimerHandle | None = None

    def note(self, event: AnyEvent) -> None:
        """Take in what happens in the session."""
        match event:
            case ApprovalRequestedEvent():
                if event.kind == "question":
                    self._notify("elicitation_dialog", event.summary)
                else:
                    text = f"Tenuto needs your approval: {event.tool} {event.summary}".strip()
                    self._notify("permission_prompt", text)
            case TaskStartedEvent():
                self.rest()
            case TaskSettledEvent() if self._live.interactive:
                self.rest()
                idle = partial(self._notify, "idle_prompt", "Tenuto is waiting for your input")
                self._due = asyncio.get_running_loop().call_later(IDLE_SECONDS, idle)
            case ChildEndedEvent() if event.outcome != "completed" and self._live.hooks is not None:
                # one that has answered was asked about before its end
                ended = {"stop_hook_active": False, "last_assistant_message": event.answer}
                place = Path(event.transcript)
                self._live.hooks.beside(ask_at_childs_end(self._live, event.child, event.agent, place, ended))
            case _:
                pass

    def rest(self) -> None:
        """Wait for the user no longer."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _notify(self, kind: str, message: str) -> None:
        details = {"notification_type": kind, "title": "Tenuto", "message": message}
        self._tell("Notification", details, kind)

    def _tell(self, event: EventName, details: Mapping[str, object], name: str) -> None:
        if self._live.hooks is not None:
            self._live.hooks.beside(ask(self._live, event, details, names=(name,)))


async def end_session(live: LiveSession, reason: EndReason) -> None:
    """Tell the hooks that the session ends, and let go of them."""
    if live.hooks is None:
        return
    await live.hooks.ready()
    await ask(live, "SessionEnd", {"reason": reason}, names=(reason,), longest=END_SECONDS)
    await live.hooks.close()
