"""The ATIF export: a session as one JSON document of the Agent Trajectory Interchange Format.

Benchmarks and training read it. The steps are the active path in order; a result stands in the step of its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, ModelEntry, ShellEntry, UndoEntry
from tenuto.protocol.message import (
    AgentView,
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import (
    ContentPart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebSearch,
    cited_in,
    searches_in,
    text_of,
)
from tenuto.protocol.usage import Usage
from tenuto.session.describe import kind_of, line_of
from tenuto.session.exporters.source import (
    SUMMARIES,
    Answer,
    Call,
    Item,
    Source,
    Writing,
    arrange,
    find_undone,
    format_machine_time,
    read_image,
    read_outline,
    read_shares,
)
from tenuto.text.call_summary import read_arguments
from tenuto.text.writable import to_json
from tenuto.version import __version__

VERSION = "ATIF-v1.7"
"""The newest version whose fields are all that is written here; readers of later versions take it as well."""
_NOTES = (
    "The steps are the session's active path. The totals of `final_metrics` are those of all calls: of branches that "
    "were left, of summaries and of sub-agents too."
)
_LAST_MOMENT = 253_402_300_800.0
"""The end of the year 9999 in seconds since the epoch: ISO 8601 has no later time."""


class Told(msgspec.Struct, frozen=True):
    """A session with its sub-agents: `agent` returns the one with this id, `None` where it cannot be read."""

    source: Source
    agent: Callable[[str], Told | None]


class _Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is written: a field that says nothing is left out."""


class _Image(_Written, frozen=True, kw_only=True):
    media_type: str
    path: str


class _Piece(_Written, frozen=True, kw_only=True):
    """A piece of a message that has images."""

    type: Literal["text", "image"]
    text: str | None = None
    source: _Image | None = None


_Content = str | list[_Piece]


class _ToolCall(_Written, frozen=True, kw_only=True):
    tool_call_id: str
    function_name: str
    arguments: Mapping[str, Any]
    extra: dict[str, Any] | None = None


class _Reference(_Written, frozen=True, kw_only=True):
    trajectory_id: str
    session_id: str
    extra: dict[str, Any] | None = None


class _Result(_Written, frozen=True, kw_only=True):
    content: _Content
    source_call_id: str | None = None
    subagent_trajectory_ref: list[_Reference] | None = None
    extra: dict[str, Any] | None = None


class _Observation(_Written, frozen=True, kw_only=True):
    results: list[_Result]


class _Metrics(_Written, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost_usd: float | None = None
    extra: dict[str, Any] | None = None


class _Step(_Written, frozen=True, kw_only=True):
    step_id: int
    source: Literal["system", "user", "agent"]
    message: _Content
    timestamp: str = ""
    model_name: str = ""
    reasoning_effort: str = ""
    reasoning_content: str = ""
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None


class _Agent(_Written, frozen=True, kw_only=True):
    name: str
    version: str
    model_name: str = ""
    extra: dict[str, Any] | None = None


class _Totals(_Written, frozen=True, kw_only=True):
    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_tokens: int
    total_steps: int
    total_cost_usd: float | None = None
    extra: dict[str, Any] | None = None


def has_steps(source: Source) -> bool:
    """Return whether there is anything to write: the format knows no trajectory without a step."""
    return any(_is_step(item) for item in arrange(read_outline(source.entries).path))


def write_trajectory(told: Told, trajectory_id: str = "") -> Iterator[str]:
    """Yield the document in pieces. `trajectory_id` names a sub-agent's inside that of its parent."""
    source = told.source
    outline = read_outline(source.entries)
    writer = _Writer(source, told.agent, find_undone(outline.path))
    head = {"schema_version": VERSION, "session_id": source.id, "trajectory_id": trajectory_id or source.id}
    for name, value in {**head, "agent": _agent(source), "notes": _NOTES}.items():
        yield f'{"{" if name == "schema_version" else ","}"{name}":{_json(value)}'
    yield ',"steps":['
    for step in writer.steps(Writing(source).items(outline.pieces[0])):
        yield f"{',' if step.step_id > 1 else ''}\n{_json(step)}"
    yield f'],\n"final_metrics":{_json(_totals(source, writer.count))}'
    for number, (name, agent) in enumerate(writer.agents.items()):
        yield ',"subagent_trajectories":[' if number == 0 else ","
        yield from write_trajectory(agent, name)
    yield "]}\n" if writer.agents else "}\n"


def _json(value: object) -> str:
    return to_json(value).decode()


def _agent(source: Source) -> _Agent:
    tools = [entry.tools for entry in source.entries if isinstance(entry, SystemMessage) and entry.tools]
    extra: dict[str, Any] = {"cwd": source.cwd} if source.cwd else {}
    if tools:
        extra["tools"] = tools[-1]
    model = source.state.model or next(
        (entry.model for entry in reversed(source.entries) if isinstance(entry, AssistantMessage) and entry.model), ""
    )
    return _Agent(name="tenuto", version=__version__, model_name=model, extra=extra or None)


def _totals(source: Source, steps: int) -> _Totals:
    shares = read_shares(source.entries)
    usage = shares[-1].usage if shares else Usage()  # the sum, or the only one
    by_name = {share.name: _as_metrics(share.usage) for share in shares[:-1]} if len(shares) > 1 else {}
    return _Totals(
        total_prompt_tokens=usage.sent,
        total_completion_tokens=usage.output,
        total_cached_tokens=usage.cache_read,
        total_cost_usd=usage.cost,
        total_steps=steps,
        extra={"shares": by_name} if by_name else None,
    )


def _as_metrics(usage: Usage) -> _Metrics:
    extra = {
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "web_searches": usage.searches,
    }
    return _Metrics(
        prompt_tokens=usage.sent,
        completion_tokens=usage.output,
        cached_tokens=usage.cache_read,
        cost_usd=usage.cost,
        extra={name: number for name, number in extra.items() if number} or None,
    )


def _is_step(item: Item) -> bool:
    """Return whether an item is one: what the model saw or said, and what changed what it saw."""
    match item:
        case ExtensionEntry():
            return item.in_view
        case Answer() | UserMessage() | SystemMessage() | DeveloperMessage() | ToolResultMessage() | ShellEntry():
            return True
        case _:
            return isinstance(item, (CompactionEntry, BranchSummaryEntry, UndoEntry))


class _Writer:
    """Makes steps, and collects the sub-agents that they name."""

    def __init__(self, source: Source, agent: Callable[[str], Told | None], undone: frozenset[int]) -> None:
        self.count = 0
        self.agents: dict[str, Told] = {}
        self._agent = agent
        self._load_blob = source.load_blob
        self._undone = undone
        self._efforts = _efforts(source.entries)

    def steps(self, items: Iterable[Item]) -> Iterator[_Step]:
        """Yield one for each item that is a step, numbered from 1."""
        for item in filter(_is_step, items):
            self.count += 1
            yield self._step(item, format_machine_time(item.ts) if item.ts < _LAST_MOMENT else "")

    def _step(self, item: Item, moment: str) -> _Step:
        number, extra = self.count, {"seq": item.seq}
        match item:
            case Answer():
                return self._answer(item, moment)
            case UserMessage():
                extra |= {} if item.origin == "typed" else {"origin": item.origin}
                return _Step(
                    step_id=number, source="user", message=self._content(item.parts), timestamp=moment, extra=extra
                )
            case ToolResultMessage():
                message, observed = f"{item.name}: a result without its call", self._result(item, None)
            case ShellEntry():
                message, observed = f"The user ran: {item.command}", _Result(content=item.output)
                extra |= {"exit_code": item.exit_code, "in_view": not item.excluded}
            case SystemMessage() | DeveloperMessage():
                message, observed = item.text, None
            case CompactionEntry():
                message, observed = line_of(item), None
                extra |= _compaction(item, undone=item.seq in self._undone)
            case ExtensionEntry():
                message, observed = self._content(item.parts), None
            case BranchSummaryEntry():
                message, observed = item.summary, None
            case _:
                message, observed = line_of(item), None
        return _Step(
            step_id=number,
            source="system",
            message=message,
            timestamp=moment,
            observation=None if observed is None else _Observation(results=[observed]),
            extra={"kind": kind_of(item).name, **extra},
        )

    def _answer(self, answer: Answer, moment: str) -> _Step:
        message = answer.message
        names = _call_names(answer.calls)
        results = [
            self._result(call.result, name)
            for call, name in zip(answer.calls, names, strict=True)
            if call.result is not None
        ]
        return _Step(
            step_id=self.count,
            source="agent",
            message=text_of(message.parts),
            timestamp=moment,
            model_name=message.model,
            reasoning_effort=self._efforts.get(message.seq, ""),
            reasoning_content="\n\n".join(
                part.text for part in message.parts if isinstance(part, ThinkingPart) and part.text
            ),
            tool_calls=[_call(call.part, name) for call, name in zip(answer.calls, names, strict=True)] or None,
            observation=_Observation(results=results) if results else None,
            metrics=None if message.usage is None else _as_metrics(message.usage),
            llm_call_count=1,
            extra=_answer_facts(message),
        )

    def _result(self, result: ToolResultMessage, call: str | None) -> _Result:
        flags = {
            "is_error": result.is_error,
            "denied": result.denied,
            "interrupted": result.interrupted,
            "truncated": result.truncated,
        }
        extra: dict[str, Any] = {name: True for name, holds in flags.items() if holds}
        if result.duration:
            extra["duration_s"] = result.duration
        views = [view for view in result.ui if isinstance(view, AgentView)]
        references = [found for view in views if (found := self._reference(view)) is not None]
        return _Result(
            source_call_id=call,
            content=self._content(result.parts),
            subagent_trajectory_ref=references or None,
            extra=extra or None,
        )

    def _reference(self, view: AgentView) -> _Reference | None:
        """Return where a sub-agent's own trajectory is; `None` where its session is gone."""
        if view.session not in self.agents:
            told = self._agent(view.session)
            if told is None or not has_steps(told.source):
                return None
            self.agents[view.session] = told
        extra = {"agent": view.agent, "outcome": view.outcome}
        return _Reference(trajectory_id=view.session, session_id=view.session, extra=extra)

    def _content(self, parts: Sequence[ContentPart]) -> _Content:
        """Return a text, or pieces where there are images among it."""
        if not any(isinstance(part, ImagePart) for part in parts):
            return text_of(tuple(parts))
        return [self._piece(part) for part in parts]

    def _piece(self, part: ContentPart) -> _Piece:
        if isinstance(part, TextPart):
            return _Piece(type="text", text=part.text)
        address, missing = read_image(part, self._load_blob)
        if missing:
            return _Piece(type="text", text=f"[{part.name or 'image'}: {missing}]")
        # As an address that holds the bytes: the document stands by itself wherever it is taken.
        return _Piece(type="image", source=_Image(media_type=part.media_type, path=address))


def _efforts(entries: Sequence[HistoryEvent]) -> dict[int, str]:
    """Return the effort that was asked for at each answer, by its seq, where one was."""
    efforts: dict[int, str] = {}
    effort = ""
    for entry in entries:
        if isinstance(entry, ModelEntry):
            effort = entry.effort
        elif isinstance(entry, AssistantMessage) and effort:
            efforts[entry.seq] = effort
    return efforts


def _call_names(calls: Sequence[Call]) -> list[str]:
    """Return an id for each call of an answer, all different: some servers give two calls the same one."""
    names: list[str] = []
    for call in calls:
        name, number = call.part.id or "call", 1
        while name in names:
            number += 1
            name = f"{call.part.id or 'call'}#{number}"
        names.append(name)
    return names


def _call(part: ToolCallPart, name: str) -> _ToolCall:
    arguments = read_arguments(part.arguments)
    extra: dict[str, Any] = {"fault": part.fault} if part.fault else {}
    if arguments is None:
        extra["arguments_as_written"] = part.arguments
    return _ToolCall(tool_call_id=name, function_name=part.name, arguments=arguments or {}, extra=extra or None)


def _answer_facts(message: AssistantMessage) -> dict[str, Any]:
    facts: dict[str, Any] = {"seq": message.seq, "stop_reason": message.stop_reason}
    if message.duration:
        facts["duration_s"] = message.duration
    if found := searches_in(message.parts):
        facts["web_searches"] = [_search(search) for search in found]
    if cited := cited_in(message.parts):
        facts["sources"] = [{"url": page.url, "title": page.title} for page in cited]
    return facts


def _search(search: WebSearch) -> dict[str, Any]:
    pages = [{"url": page.url, "title": page.title} for page in search.sources]
    return {"action": search.action, "query": search.query, "pages": pages, "error": search.error}


def _compaction(entry: CompactionEntry, *, undone: bool) -> dict[str, Any]:
    """Return what a compaction did, under the name that other agents' trajectories have it by."""
    facts: dict[str, Any] = {
        "type": "compaction",
        "boundary": "replace",
        "reason": entry.reason,
        "rung": entry.rung,
        "tokens_before": entry.tokens_before,
        "tokens_after": entry.tokens_after,
        "first_kept_seq": entry.first_kept_index,
        "duration_s": entry.duration,
        "undone": undone,
    }
    if entry.summary:
        facts["summary"] = entry.summary
    if entry.usage is not None:
        facts[SUMMARIES] = _as_metrics(entry.usage)
    return {"context_management": facts}
