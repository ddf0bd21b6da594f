"""OpenTelemetry: spans of a run, as a real receiver of OTLP over HTTP gets them."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tenuto.protocol.event import NoticeEvent
from tests.core.compacting import SUMMARY, is_summary_request
from tests.core.harness import agent, reopened
from tests.server import Call, Reply, Request, ScriptedServer

SECRET_WORDS = ("mend the parser", "all mended", "echo hello")


class Receiver:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.status = 200

    @property
    def spans(self) -> list:
        found = []
        for body in self.bodies:
            request = ExportTraceServiceRequest.FromString(body)
            found += [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]
        return found

    def named(self, name: str):
        return [span for span in self.spans if span.name == name]


def attributes(span) -> dict:
    values = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        values[pair.key] = (
            getattr(pair.value, kind)
            if kind != "array_value"
            else [one.string_value for one in pair.value.array_value.values]
        )
    return values


@contextmanager
def receiver() -> Iterator[tuple[Receiver, str]]:
    there = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            there.paths.append(self.path)
            there.bodies.append(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(there.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield there, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def script(request: Request) -> Reply:
    if is_summary_request(request):
        return Reply(SUMMARY)
    if any(item.kind == "call" for item in request.items):
        return Reply("all mended")
    return Reply("", tool_calls=[Call("bash", {"command": "echo hello"})])


def exporting(url: str, **more: str) -> dict[str, str]:
    return {"TENUTO_TELEMETRY__OTEL": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": url, **more}


async def test_a_turn_its_calls_and_a_compaction_are_spans_without_any_text(tmp_path):
    with receiver() as (got, url):
        async with agent(tmp_path, script, environ=exporting(url)) as running:
            await running.ask("mend the parser")
            await running.runtime.run_command("/compact")
            session = running.session.id
        assert set(got.paths) == {"/v1/traces"}
        (turn,) = got.named("invoke_agent tenuto")
        chats = got.named("chat test")
        (tool,) = got.named("execute_tool bash")
        assert len(chats) == 2
        assert got.named("compaction")
        assert {span.parent_span_id for span in (*chats, tool)} == {turn.span_id}
        assert {span.trace_id for span in (*chats, tool)} == {turn.trace_id}
        told = attributes(turn)
        assert told["gen_ai.operation.name"] == "invoke_agent"
        assert told["gen_ai.conversation.id"] == session
        assert told["tenuto.outcome"] == "completed"
        first = attributes(chats[0])
        assert (first["gen_ai.provider.name"], first["gen_ai.request.model"]) == ("openai-chat", "test")
        assert first["gen_ai.usage.input_tokens"] > 0
        assert attributes(tool)["gen_ai.tool.name"] == "bash"
        assert "tenuto.compaction.reason" in attributes(got.named("compaction")[0])
        for word in SECRET_WORDS:
            assert word.encode() not in b"".join(got.bodies)


async def test_the_text_goes_along_where_a_setting_says_so(tmp_path):
    with receiver() as (got, url):
        async with agent(tmp_path, script, environ=exporting(url, TENUTO_TELEMETRY__CONTENT="true")) as running:
            await running.ask("mend the parser")
        sent = b"".join(got.bodies)
        for word in SECRET_WORDS:
            assert word.encode() in sent


@pytest.mark.parametrize("left_out", ["TENUTO_TELEMETRY__OTEL", "OTEL_EXPORTER_OTLP_ENDPOINT"])
async def test_nothing_is_sent_without_both_the_setting_and_the_variable(tmp_path, left_out):
    with receiver() as (got, url):
        environ = exporting(url)
        del environ[left_out]
        async with agent(tmp_path, script, environ=environ) as running:
            await running.ask("mend the parser")
        assert not got.bodies


async def test_what_a_resumed_session_did_before_is_not_sent_again(tmp_path):
    with receiver() as (got, url):
        async with ScriptedServer(script) as server:
            async with reopened(tmp_path, server) as running:
                await running.ask("mend the parser")
                session = running.session.id
            async with reopened(tmp_path, server, environ=exporting(url), resume=session) as running:
                await running.ask("and on")
        assert len(got.named("invoke_agent tenuto")) == 1


async def test_a_collector_that_takes_nothing_is_said_once_and_keeps_nobody(tmp_path, capfd):
    with receiver() as (got, url):
        got.status = 400
        async with agent(tmp_path, script, environ=exporting(url, OTEL_BSP_SCHEDULE_DELAY="10")) as running:
            running.runtime._telemetry._provider.force_flush()
            await running.ask("mend the parser")
            running.runtime._telemetry._provider.force_flush()
            await running.ask("again")
            running.runtime._telemetry._provider.force_flush()
            await running.until(NoticeEvent)
            said = [event.text for event in running.of(NoticeEvent) if "OpenTelemetry" in event.text]
            assert len(said) == 1
    assert "opentelemetry" not in capfd.readouterr().err.lower()


def test_nothing_of_it_is_imported_without_the_setting():
    code = "import sys, tenuto.command.runtime; print([m for m in sys.modules if m.startswith('opentelemetry.sdk')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_k4_a_short_run_says_on_standard_error_that_its_spans_are_not_taken(tmp_path, capsys, caplog):
    """What the last spans came to is known when the session is closed."""
    with receiver() as (got, url):
        got.status = 400
        async with agent(tmp_path, [Reply("Hello.")], environ=exporting(url)) as running:
            await running.ask("hi")
    assert "does not take the spans" in capsys.readouterr().err
    assert not [record for record in caplog.records if record.name == "asyncio"]
