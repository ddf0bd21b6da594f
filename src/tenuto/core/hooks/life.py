"""The life of a session's hooks: found and read, told of its start, of compactions and questions, and of its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tenuto.config.plugins.manifest import plugin_command, plugin_variables
from tenuto.config.project import project_root
from tenuto.core.hooks.asking import ask
from tenuto.core.hooks.running import run_hook
from tenuto.core.start import Start
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.extension.hooks.answers import Finished, Heard
from tenuto.extension.hooks.commands import HookCommands
from tenuto.extension.hooks.files import HookCommand, may_run
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.event import AnyEvent, ApprovalRequestedEvent, ChildEndedEvent
from tenuto.session.log.log import LOG_NAME
from tenuto.text.figures import plural

if TYPE_CHECKING:
    from tenuto.config.project import HookFile
    from tenuto.protocol.message import CompactionEntry
    from tenuto.session.session import Session

StartSource = Literal["startup", "resume", "clear", "compact"]
EndReason = Literal["clear", "resume", "other"]
END_SECONDS = 5.0
"""Seconds that hooks have at most at the end of a session."""


def make_hooks(files: Sequence[HookFile], session: Session, start: Start) -> HookCommands:
    """Return the hooks of a session that is being opened; their files are read beside everything else."""

    async def run(command: HookCommand, given: bytes, timeout: float) -> Finished:
        project, plugin = str(project_root(session.cwd)), command.file.plugin
        if plugin is not None and not plugin.is_dir():
            return Finished()  # removed meanwhile: what a shell says of a missing script must not block anything
        environ = {**start.environ, "CLAUDE_PROJECT_DIR": project, "TENUTO_PROJECT_DIR": project}
        text = command.command
        if plugin is not None:
            environ |= plugin_variables(plugin)
            text = plugin_command(text, plugin)
        records = session.store.processes
        return await run_hook(text, given, cwd=session.cwd, environ=environ, records=records, timeout=timeout)

    return HookCommands(files, run)


def begin_session(live: LiveSession, source: StartSource) -> None:
    """Tell the hooks that the session is open; the first request waits for what they have to say."""
    hooks = live.hooks
    if hooks is None:
        return
    hooks.report_with(live.warn)
    hooks.owe(_begin(live, hooks, source))
    live.on_leave.append(live.bus.subscribe(partial(_note, live)))


async def _begin(live: LiveSession, hooks: HookCommands, source: StartSource) -> Heard | None:
    await hooks.ready()
    if left := [command for command in hooks.read.commands if not may_run(command)]:
        files = ", ".join(sorted({sanitize_line(str(command.file.path)) for command in left}))
        live.notify(
            f"This project brings {plural(len(left), 'hook')} ({files}); they are not run. To use one, read it and "
            f"copy it to {live.home / 'hooks.json'}",
            "warning",
        )
    return await ask(live, "SessionStart", {"source": source}, names=(source,))


def note_compaction(services: SessionServices, entry: CompactionEntry, trigger: str) -> None:
    """Tell the hooks of a compaction that is on disk; the next request waits for what they have to say."""
    if services.hooks is not None:
        services.hooks.owe(_after_compaction(services, entry, trigger))


async def _after_compaction(services: SessionServices, entry: CompactionEntry, trigger: str) -> Heard:
    details = {"trigger": trigger, "compact_summary": entry.summary}
    first = await ask(services, "PostCompact", details, names=(trigger,))
    second = await ask(services, "SessionStart", {"source": "compact"}, names=("compact",))
    return Heard(tuple(answer for heard in (first, second) if heard is not None for answer in heard.answers))


def _note(live: LiveSession, event: AnyEvent) -> None:
    """Tell the hooks that the user is asked something, or that a sub-agent is done."""
    if live.hooks is None:
        return
    match event:
        case ApprovalRequestedEvent():
            kind = "permission_prompt"
            details = {
                "notification_type": kind,
                "title": "Tenuto",
                "message": f"Tenuto needs your approval: {event.tool} {event.summary}".strip(),
            }
            live.hooks.beside(ask(live, "Notification", details, names=(kind,)))
        case ChildEndedEvent():
            ended = {
                "stop_hook_active": False,
                "agent_id": event.child,
                "agent_type": event.agent,
                "agent_transcript_path": str(Path(event.transcript) / LOG_NAME),
                "last_assistant_message": event.answer,
            }
            live.hooks.beside(ask(live, "SubagentStop", ended, names=(event.agent,)))
        case _:
            pass


async def end_session(live: LiveSession, reason: EndReason) -> None:
    """Tell the hooks that the session ends, and let go of them."""
    if live.hooks is None:
        return
    await live.hooks.ready()
    await ask(live, "SessionEnd", {"reason": reason}, names=(reason,), longest=END_SECONDS)
    await live.hooks.close()
