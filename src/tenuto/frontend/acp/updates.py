"""Events as session updates: what the core tells, in the protocol's words. Pure.

`updates_of` takes an event and what was told so far, and returns the updates and what is told then. A replayed
transcript goes the same way as a live one, so that a loaded session looks as it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    CurrentModeUpdate,
    PlanEntry,
    SessionInfoUpdate,
    TerminalToolCallContent,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from tenuto.api.words import describe_compaction
from tenuto.frontend.acp.calls import (
    Around,
    CallContent,
    content_block,
    diff_locations,
    kind_of,
    locations_of,
    result_content,
    text_block,
    text_content,
    title_of,
)
from tenuto.frontend.acp.compaction import CompactionMessage, begin, finish, summary_chunk
from tenuto.frontend.print import describe_refusal
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    CallRefusedEvent,
    ChildEndedEvent,
    ChildProgressEvent,
    ChildTranscriptEvent,
    CommandProgressEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionProposedEvent,
    CompactionStartEvent,
    ContextUsageEvent,
    EarlierEntriesEvent,
    EarlierFoundEvent,
    ExtensionStatusEvent,
    HooksRunningEvent,
    ModeChangedEvent,
    ModelChangedEvent,
    NoticeEvent,
    PromptReturnedEvent,
    QueueChangedEvent,
    ReplayFinishedEvent,
    RetryEvent,
    SessionOpenedEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ShellStartedEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    TitleChangedEvent,
    TodoChangedEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    TrustWaitingEvent,
    UndoneEvent,
    UserMessageEvent,
    WebSearchEvent,
)
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart, WebSearch, searches_in
from tenuto.text.bounding import cut_tail
from tenuto.text.call_summary import read_arguments
from tenuto.text.figures import format_spending, plural

Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | CompactionMessage
)
LIVE_CHARS = 4_000
"""Characters of a running call's output that are shown, from its end: each update replaces the one before."""
SPEAKERS = {"info": "", "warning": "Warning: ", "error": "Error: "}


class Told(msgspec.Struct, frozen=True):
    """What the client was told so far, as far as the next update depends on it.

    `replays`: the events are an earlier conversation that the client asked for; `is_muted`: one that it has already.
    `streamed` and `thought`: the answer under way has shown text and thinking; `is_mid_line`: the last text has no
    line's end. `commands` counts the slash commands that said how far they are, `command` is how far the one under way
    is. `summary` is what the compaction under way has shown of its own. `terminals` are the client's own by the
    call that runs in them, `outputs` the ends of live outputs.
    """

    replays: bool = False
    is_muted: bool = False
    messages: int = 0
    streamed: bool = False
    is_mid_line: bool = False
    thought: bool = False
    commands: int = 0
    command: str = ""
    compactions: int = 0
    is_compacting: bool = False
    summary: str = ""
    calls: frozenset[str] = frozenset()
    searches: frozenset[str] = frozenset()
    outputs: Mapping[str, str] = {}
    terminals: Mapping[str, str] = {}


Step = tuple[list[Update], Told]


def updates_of(event: AnyEvent, told: Told, around: Around) -> Step:
    """Return the updates that an event amounts to, and what is told then."""
    match event:
        case SessionOpenedEvent():
            return [], msgspec.structs.replace(told, is_muted=True)
        case ReplayFinishedEvent():
            return [], msgspec.structs.replace(told, is_muted=False)
        case _ if told.is_muted:
            return [], told
        case _:
            pass
    if isinstance(event, Untold):
        return [], told
    if isinstance(event, Remark):
        return _say(_remark(event), told, around)
    if isinstance(event, StateEvent):
        return _state(event), told
    if isinstance(event, CommandProgressEvent):
        return _command(event, told, around)
    if isinstance(event, CallEvent):
        return _about_call(event, told, around)
    if isinstance(event, CompactionEvent):
        return _compaction(event, told, around)
    return _conversation(event, told, around)


Untold = (
    ModelChangedEvent  # the session tells the whole of the options
    | ApprovalRequestedEvent  # a request of its own
    | ApprovalResolvedEvent
    | CompactionProposedEvent  # a request of its own
    | PromptReturnedEvent  # the answer to the prompt says it
    | TaskStartedEvent
    | TaskFinishedEvent
    | TaskSettledEvent
    | ToolCallDeltaEvent
    | ChildEndedEvent  # its call's result says it
    | ChildTranscriptEvent
    | HooksRunningEvent
    | ExtensionStatusEvent  # a line of a screen of ours
    | QueueChangedEvent
    | ShellStartedEvent  # commands of the user belong to the screens
    | ShellOutputEvent
    | EarlierEntriesEvent
    | EarlierFoundEvent
    | UndoneEvent  # a notice says it
)
"""What the client is told in another way, or not at all."""
Remark = NoticeEvent | RetryEvent | CallRefusedEvent | TrustWaitingEvent
StateEvent = TodoChangedEvent | ModeChangedEvent | TitleChangedEvent | ContextUsageEvent
CallEvent = (
    WebSearchEvent | ToolStartedEvent | ToolOutputEvent | ToolResultEvent | ChildProgressEvent | ShellFinishedEvent
)
CompactionEvent = CompactionStartEvent | CompactionProgressEvent | CompactionEndEvent
Conversation = (
    UserMessageEvent
    | StepStartedEvent
    | AssistantTextDeltaEvent
    | AssistantThinkingDeltaEvent
    | AssistantWithdrawnEvent
    | AssistantMessageEvent
)


# --- what is said ---


def _remark(event: Remark) -> str:
    match event:
        case NoticeEvent():
            return f"{SPEAKERS[event.level]}{event.text}"
        case RetryEvent():
            return f"{event.reason}; trying again in {event.wait:.0f} s ({event.attempt}/{event.attempts})"
        case CallRefusedEvent():
            return describe_refusal(event)
        case TrustWaitingEvent():
            brought = plural(event.count, "thing")
            return f"This project brings {brought} that count only once you trust them: /trust"
        case _:
            assert_never(event)


def _conversation(event: Conversation, told: Told, around: Around) -> Step:
    match event:
        case UserMessageEvent():
            return _user_message(event, told, around) if told.replays else ([], told)
        case StepStartedEvent() | AssistantTextDeltaEvent() | AssistantThinkingDeltaEvent():
            return _streamed(event, told, around)
        case AssistantWithdrawnEvent():
            return _withdrawn(event, told, around)
        case AssistantMessageEvent():
            return _answer(event, told, around)
        case _:
            assert_never(event)


def _say(text: str, told: Told, around: Around) -> Step:
    """Say something that is no part of the model's answers, as a message of its own.

    A client that knows no ids of messages puts it right behind the last one, so it begins a paragraph in any case.
    """
    before = "\n\n" if told.is_mid_line else ""
    told = msgspec.structs.replace(told, messages=told.messages + 1, is_mid_line=False)
    said = _message(f"{before}{text}\n\n", told, around)
    return [said], msgspec.structs.replace(told, messages=told.messages + 1)


def _message(text: str, told: Told, around: Around) -> AgentMessageChunk:
    return AgentMessageChunk(
        session_update="agent_message_chunk", content=text_block(text), message_id=_message_id(told, around)
    )


def _thought(text: str, told: Told, around: Around) -> AgentThoughtChunk:
    return AgentThoughtChunk(
        session_update="agent_thought_chunk",
        content=text_block(text),
        message_id=f"{_message_id(told, around)}-thought",
    )


def _message_id(told: Told, around: Around) -> str:
    return f"{around.key}-{told.messages}"


def _user_message(event: UserMessageEvent, told: Told, around: Around) -> Step:
    told = msgspec.structs.replace(told, messages=told.messages + 1)
    return [
        UserMessageChunk(
            session_update="user_message_chunk",
            content=content_block(part, around),
            message_id=_message_id(told, around),
        )
        for part in event.parts
    ], told


def _streamed(
    event: StepStartedEvent | AssistantTextDeltaEvent | AssistantThinkingDeltaEvent, told: Told, around: Around
) -> Step:
    if isinstance(event, StepStartedEvent):
        return [], msgspec.structs.replace(told, messages=told.messages + 1, streamed=False, thought=False)
    if isinstance(event, AssistantTextDeltaEvent):
        is_mid_line = not event.text.endswith("\n")
        return [_message(event.text, told, around)], msgspec.structs.replace(
            told, streamed=True, is_mid_line=is_mid_line
        )
    return [_thought(event.text, told, around)], msgspec.structs.replace(told, thought=True)


def _withdrawn(event: AssistantWithdrawnEvent, told: Told, around: Around) -> Step:
    """What was shown cannot be taken back here; it is said that it does not count."""
    shown = told.streamed or told.thought
    told = msgspec.structs.replace(told, messages=told.messages + 1, streamed=False, thought=False)
    return _say(f"(What came last does not count: {event.reason})", told, around) if shown else ([], told)


def _answer(event: AssistantMessageEvent, told: Told, around: Around) -> Step:
    """What was not streamed of an answer, and the calls that it asks for."""
    updates: list[Update] = []
    if not (told.streamed or told.thought):
        told = msgspec.structs.replace(told, messages=told.messages + 1)
    for search in searches_in(event.message.parts):
        more, told = _search(search, told)
        updates += more
    for part in event.message.parts:
        if isinstance(part, ThinkingPart) and part.text and not told.thought:
            updates.append(_thought(part.text, told, around))
        elif isinstance(part, TextPart) and part.text and not told.streamed:
            updates.append(_message(part.text, told, around))
            told = msgspec.structs.replace(told, is_mid_line=not part.text.endswith("\n"))
        elif isinstance(part, ToolCallPart):
            updates.append(_call(part, around))
    calls = frozenset(call.id for call in event.message.tool_calls)
    return updates, msgspec.structs.replace(
        told, messages=told.messages + 1, streamed=False, thought=False, calls=calls, outputs={}
    )


# --- calls ---


def _about_call(event: CallEvent, told: Told, around: Around) -> Step:
    match event:
        case WebSearchEvent():
            return _search(event.search, told)
        case ToolStartedEvent():
            return _started(event, told, around)
        case ToolOutputEvent():
            return _output(event, told)
        case ToolResultEvent():
            return _result(event, told, around)
        case ChildProgressEvent():
            return [_progress(event)], told
        case ShellFinishedEvent():
            return _shell(event, told) if told.replays else ([], told)
        case _:
            assert_never(event)


def _call(part: ToolCallPart, around: Around) -> ToolCallStart:
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=part.id,
        title=title_of(part.name, part.arguments),
        kind=kind_of(part.name),
        status="pending",
        locations=locations_of(part.name, part.arguments, around.cwd),
        raw_input=read_arguments(part.arguments) or part.arguments,
    )


def _started(event: ToolStartedEvent, told: Told, around: Around) -> Step:
    if event.call_id in told.calls:
        progress = ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=event.call_id,
            title=title_of(event.name, event.arguments, event.summary),
            status="in_progress",
        )
        return [progress], told
    part = ToolCallPart(id=event.call_id, name=event.name, arguments=event.arguments)
    start = _call(part, around)
    start.status = "in_progress"
    return [start], msgspec.structs.replace(told, calls=told.calls | {event.call_id})


def _output(event: ToolOutputEvent, told: Told) -> Step:
    """The end of what a running call has written; one that runs in a terminal of the client's shows itself."""
    if event.call_id in told.terminals:
        return [], told
    shown = cut_tail(told.outputs.get(event.call_id, "") + event.text, LIVE_CHARS)
    progress = ToolCallProgress(
        session_update="tool_call_update", tool_call_id=event.call_id, content=[text_content(shown)]
    )
    return [progress], msgspec.structs.replace(told, outputs={**told.outputs, event.call_id: shown})


def _result(event: ToolResultEvent, told: Told, around: Around) -> Step:
    message = event.message
    content: list[CallContent] = result_content(message.parts, message.ui, around)
    terminal = told.terminals.get(message.call_id)
    if terminal is not None:
        content = [TerminalToolCallContent(type="terminal", terminal_id=terminal)]
    progress = ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=message.call_id,
        status="failed" if message.failed else "completed",
        content=content,
    )
    if locations := diff_locations(message.ui, around.cwd):
        progress.locations = locations
    outputs = {call: text for call, text in told.outputs.items() if call != message.call_id}
    terminals = {call: one for call, one in told.terminals.items() if call != message.call_id}
    return [progress], msgspec.structs.replace(told, outputs=outputs, terminals=terminals)


def _progress(event: ChildProgressEvent) -> ToolCallProgress:
    spent = f", {format_spending(event.tokens, event.cost)}" if event.tokens else ""
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=event.call_id,
        content=[text_content(f"{event.agent}: {plural(event.steps, 'step')}{spent}")],
    )


def _search(search: WebSearch, told: Told) -> Step:
    """A web search of the provider's own, as a call."""
    title = f"web search: {search.query}" if search.query else "web search"
    pages = "\n".join(f"- [{source.title or source.url}]({source.url})" for source in search.sources)
    content: list[CallContent] = [text_content(search.error or pages)] if search.error or pages else []
    status = ("failed" if search.error else "completed") if search.done else "in_progress"
    if search.id in told.searches:
        if not search.done:
            return [], told
        progress = ToolCallProgress(
            session_update="tool_call_update", tool_call_id=search.id, title=title, status=status, content=content
        )
        return [progress], told
    start = ToolCallStart(
        session_update="tool_call", tool_call_id=search.id, title=title, kind="fetch", status=status, content=content
    )
    return [start], msgspec.structs.replace(told, searches=told.searches | {search.id})


def _command(event: CommandProgressEvent, told: Told, around: Around) -> Step:
    """How far a slash command is, as a call whose title counts: the protocol has no other place for it."""
    begins, ends = not told.command, not event.text
    told = msgspec.structs.replace(told, command=event.text, commands=told.commands + begins)
    call_id = f"{around.key}-command-{told.commands}"
    if ends:
        return [ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, status="completed")], told
    if begins:
        start = ToolCallStart(
            session_update="tool_call", tool_call_id=call_id, title=event.text, kind="other", status="in_progress"
        )
        return [start], told
    return [ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, title=event.text)], told


def _shell(event: ShellFinishedEvent, told: Told) -> Step:
    """A command of the user's own in an earlier conversation."""
    entry = event.entry
    start = ToolCallStart(
        session_update="tool_call",
        tool_call_id=f"shell-{entry.seq}",
        title=title_of("bash", "", entry.command),
        kind="execute",
        status="completed",
        content=[text_content(entry.output)],
    )
    return [start], told


# --- the state of the session ---


def _state(event: StateEvent) -> list[Update]:
    match event:
        case TodoChangedEvent():
            return [_plan(event)]
        case ModeChangedEvent():
            return [CurrentModeUpdate(session_update="current_mode_update", current_mode_id=event.mode)]
        case TitleChangedEvent():
            return [SessionInfoUpdate(session_update="session_info_update", title=event.title)]
        case ContextUsageEvent():
            return _usage(event)
        case _:
            assert_never(event)


def _plan(event: TodoChangedEvent) -> AgentPlanUpdate:
    """The todo list; the protocol has no word for what was given up, so that is left out."""
    entries = [
        PlanEntry(
            content=text_block(item.text).text,
            priority="medium",
            status="completed" if item.status == "done" else item.status,
        )
        for item in event.items
        if item.status != "cancelled"
    ]
    return AgentPlanUpdate(session_update="plan", entries=entries)


def _usage(event: ContextUsageEvent) -> list[Update]:
    """How full the window is; nothing where nobody says how large it is, because the protocol has no word for that."""
    if event.window is None:
        return []
    cost = Cost(amount=event.total.cost, currency="USD") if event.total.cost is not None else None
    return [UsageUpdate(session_update="usage_update", used=event.tokens, size=event.window, cost=cost)]


# --- compactions ---


def _compaction(event: CompactionEvent, told: Told, around: Around) -> Step:
    """A compaction as the client understands it. Notes on a branch that is left compact nothing: a line says it."""
    match event:
        case CompactionProgressEvent():
            return _summary(event, told, around)
        case CompactionStartEvent(reason="branch"):
            return [], told
        case CompactionEndEvent(reason="branch"):
            return _say(describe_compaction(event), told, around)
        case CompactionStartEvent():
            told = msgspec.structs.replace(told, compactions=told.compactions + 1, is_compacting=True, summary="")
            if around.compactions:
                return [begin(_compaction_id(told, around))], told
            return _say("Compacting the conversation…", told, around)
        case CompactionEndEvent():
            return _compacted(event, told, around)
        case _:
            assert_never(event)


def _summary(event: CompactionProgressEvent, told: Told, around: Around) -> Step:
    """The summary as it is written; where a request begins anew, what came of the one before is taken back."""
    if not (told.is_compacting and around.compactions):
        return [], told
    compaction_id = _compaction_id(told, around)
    if event.summary_tokens == 0 and told.summary:
        return [begin(compaction_id, anew=True)], msgspec.structs.replace(told, summary="")
    text = sanitize_for_terminal(event.text or "")
    if not text:
        return [], told
    return [summary_chunk(compaction_id, text)], msgspec.structs.replace(told, summary=told.summary + text)


def _compacted(event: CompactionEndEvent, told: Told, around: Around) -> Step:
    shown = told.summary if told.is_compacting else None
    if shown is None:
        told = msgspec.structs.replace(told, compactions=told.compactions + 1)
    said: list[Update] = []
    if around.compactions:
        said += finish(event, _compaction_id(told, around), shown)
    told = msgspec.structs.replace(told, is_compacting=False, summary="")
    if around.compactions and (event.entry is None or event.error is None):
        return said, told
    remark = event.error or "" if around.compactions else describe_compaction(event)
    more, told = _say(remark, told, around)
    return [*said, *more], told


def _compaction_id(told: Told, around: Around) -> str:
    return f"{around.key}-compaction-{told.compactions}"
