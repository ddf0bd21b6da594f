"""Turns, model calls, tools and compactions as OpenTelemetry spans, for who runs a collector and switches it on.

A listener of the event bus: it changes nothing, and what it cannot send is lost and said once. Names are those of the
GenAI semantic conventions, with `tenuto.` before what they have no name for. No text of the conversation goes along
unless `telemetry.content` says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tenuto.config.settings import TelemetrySettings
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantWithdrawnEvent,
    CompactionEndEvent,
    CompactionStartEvent,
    ModelChangedEvent,
    ReplayFinishedEvent,
    RetryEvent,
    SessionOpenedEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskStartedEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.part import text_of
from tenuto.text.writable import to_json
from tenuto.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span, Tracer

ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
SEND_SECONDS = 5.0
"""Seconds for one attempt to send."""
END_SECONDS = 3.0
"""Seconds that the end of the program waits for what is not sent yet."""
MISSING = "telemetry.otel needs the extra otel (uv tool install 'tenuto[otel]'); nothing is exported"

Value = str | int | float | bool | Sequence[str]


def endpoint_of(settings: TelemetrySettings, environ: Mapping[str, str]) -> str:
    """Return where spans go, empty for nowhere: the setting and the variable have to be there, both."""
    if not settings.otel:
        return ""
    whole, base = environ.get(TRACES_ENDPOINT, ""), environ.get(ENDPOINT, "")
    return whole or (f"{base.rstrip('/')}/v1/traces" if base else "")


class Telemetry:
    """Opens and closes spans as events come. Raises `ImportError` where the libraries of the extra are missing."""

    def __init__(self, endpoint: str, *, content: bool, tell: Callable[[str], None]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False  # the screen is not theirs
        exporter = _watched(OTLPSpanExporter(endpoint=endpoint, timeout=SEND_SECONDS), endpoint, tell)
        resource = Resource.create({"service.name": "tenuto", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer: Tracer = self._provider.get_tracer("tenuto", __version__)
        self._content = content
        self._model = ""
        self._replaying = False
        self._turn: Span | None = None
        self._chat: Span | None = None
        self._compaction: Span | None = None
        self._tools: dict[str, Span] = {}

    async def close(self) -> None:
        """End what is open and send it, within a few seconds."""
        self._end_turn("interrupted", "")
        try:
            async with asyncio.timeout(END_SECONDS):
                await asyncio.to_thread(self._provider.shutdown)
        except TimeoutError:
            return

    def note(self, event: AnyEvent) -> None:
        """Take note of one event; those of a resumed session's past are none of ours."""
        if isinstance(event, SessionOpenedEvent):
            self._replaying, self._model = True, event.model
        elif isinstance(event, ReplayFinishedEvent):
            self._replaying = False
        elif isinstance(event, ModelChangedEvent):
            self._model = event.model
        elif not self._replaying:
            self._note_work(event)

    def _note_work(self, event: AnyEvent) -> None:
        match event:
            case TaskStartedEvent(kind="agent"):
                self._begin_turn(event.session_id)
            case TaskFinishedEvent(kind="agent"):
                self._end_turn(event.outcome, event.error)
            case UserMessageEvent() if self._content and self._turn is not None:
                self._turn.set_attribute("gen_ai.input.messages", _messages("user", text_of(event.parts)))
            case StepStartedEvent():
                self._begin_chat()
            case RetryEvent() if self._chat is not None:
                self._chat.add_event("retry")
            case AssistantWithdrawnEvent() if self._chat is not None:
                self._chat.add_event("withdrawn")
            case AssistantMessageEvent():
                self._end_chat(event)
            case ToolStartedEvent():
                self._begin_tool(event)
            case ToolResultEvent():
                self._end_tool(event)
            case CompactionStartEvent():
                self._compaction = self._start("compaction", {"tenuto.compaction.reason": event.reason})
            case CompactionEndEvent():
                self._end_compaction(event)
            case _:
                pass

    # --- spans ---

    def _start(self, name: str, attributes: Mapping[str, Value]) -> Span:
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(self._turn) if self._turn is not None else None
        return self._tracer.start_span(name, context, attributes=dict(attributes))

    def _begin_turn(self, session_id: str) -> None:
        self._turn = None
        self._turn = self._start(
            "invoke_agent tenuto",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "tenuto",
                "gen_ai.conversation.id": session_id,
                **_model_names(self._model),
            },
        )

    def _end_turn(self, outcome: str, error: str) -> None:
        for span in (*self._tools.values(), self._chat):
            if span is not None:
                _fail(span, outcome)
                span.end()
        self._tools.clear()
        self._chat = None
        if self._turn is not None:
            self._turn.set_attribute("tenuto.outcome", outcome)
            if outcome == "failed":
                _fail(self._turn, "failed", error if self._content else "")
            self._turn.end()
            self._turn = None

    def _begin_chat(self) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context

        if self._chat is not None:
            self._chat.end()
        context = set_span_in_context(self._turn) if self._turn is not None else None
        names = _model_names(self._model)
        name = f"chat {names.get('gen_ai.request.model', '')}".rstrip()
        attributes = {"gen_ai.operation.name": "chat", **names}
        self._chat = self._tracer.start_span(name, context, kind=SpanKind.CLIENT, attributes=attributes)

    def _end_chat(self, event: AssistantMessageEvent) -> None:
        span, self._chat, message = self._chat, None, event.message
        if span is None:
            return
        span.set_attribute("gen_ai.response.finish_reasons", [message.stop_reason])
        if message.response_id:
            span.set_attribute("gen_ai.response.id", message.response_id)
        if message.usage is not None:
            used = message.usage
            span.set_attribute("gen_ai.usage.input_tokens", used.sent)
            span.set_attribute("gen_ai.usage.output_tokens", used.output)
            span.set_attribute("gen_ai.usage.cache_read.input_tokens", used.cache_read)
            span.set_attribute("gen_ai.usage.cache_creation.input_tokens", used.cache_write)
            if used.cost is not None:
                span.set_attribute("tenuto.cost_usd", used.cost)
        if self._content:
            span.set_attribute("gen_ai.output.messages", _messages("assistant", text_of(message.parts)))
        span.end()

    def _begin_tool(self, event: ToolStartedEvent) -> None:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = event.arguments
        self._tools[event.call_id] = self._start(f"execute_tool {event.name}", attributes)

    def _end_tool(self, event: ToolResultEvent) -> None:
        message = event.message
        span = self._tools.pop(message.call_id, None)
        if span is None:
            return
        if message.is_error:
            _fail(span, "tool_error")
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", text_of(message.parts))
        span.end()

    def _end_compaction(self, event: CompactionEndEvent) -> None:
        span, self._compaction = self._compaction, None
        if span is None:
            return
        if event.entry is not None:
            span.set_attribute("tenuto.compaction.way", str(event.entry.rung))
        for name, tokens in (("before", event.tokens_before), ("after", event.tokens_after)):
            if tokens is not None:
                span.set_attribute(f"tenuto.compaction.tokens_{name}", tokens)
        if event.aborted or (event.error and not event.needless and event.entry is None):
            _fail(span, "aborted" if event.aborted else "failed")
        span.end()


def _model_names(model: str) -> dict[str, Value]:
    provider, slash, name = model.partition("/")
    return {"gen_ai.provider.name": provider, "gen_ai.request.model": name} if slash else {}


def _messages(role: str, text: str) -> str:
    return to_json([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()


def _fail(span: Span, kind: str, text: str = "") -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, text or None))


def _watched(exporter: SpanExporter, endpoint: str, tell: Callable[[str], None]) -> SpanExporter:
    """Return an exporter that says once, on the loop, that nobody takes what it sends."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    loop = asyncio.get_running_loop()

    class Watched(SpanExporter):
        failed = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = exporter.export(spans)
            if result is not SpanExportResult.SUCCESS and not self.failed:
                self.failed = True
                if not loop.is_closed():
                    loop.call_soon_threadsafe(tell, f"OpenTelemetry: {endpoint} does not take the spans of this run")
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return Watched()
