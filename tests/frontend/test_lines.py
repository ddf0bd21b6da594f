"""The lines of `stream-json` and their JSON Schema: real runs fit it, with every kind of line, block and end."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tenuto.frontend.lines import READ, WRITTEN, stream_schema
from tenuto.frontend.stream import BadMessageError, Interrupt, read_message
from tests.api.test_agent import PNG
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.core.compacting import is_summary_request
from tests.core.harness import PROTOCOLS
from tests.frontend.stream_schema import FILE, written
from tests.server import Call, HttpError, Reply, Search, ServerThread


@cache
def validator(way: str) -> Draft202012Validator:
    schema = stream_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator({"$ref": f"#/$defs/{way}", "$defs": schema["$defs"]})


def test_the_committed_schema_is_current():
    assert FILE.read_text(encoding="utf-8") == written(), "run scripts/schema"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_kind_of_line_and_block_of_real_runs_fits(run, protocol):  # noqa: F811
    (run.work / "dot.png").write_bytes(PNG)
    pages = [("Ada", "https://example.org/ada")]
    scripted = [
        HttpError(503),
        Reply(
            "I look.",
            thinking="Hm.",
            tool_calls=[Call("read", {"path": "dot.png"}), Call("bash", {"command": "id -u > f"})],
        ),
        Reply("Found it.", searches=[Search("ada", pages)] if protocol != "openai-chat" else ()),
    ]

    def script(request):
        if is_summary_request(request):
            return Reply("## Goal\nGo on.")
        return scripted.pop(0) if scripted else Reply("fine " * 600)

    prompts = [f"question {number} " + "because " * 300 for number in range(6)]
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in prompts]
    lines += [
        {"type": "control_request", "request_id": "7", "request": {"subtype": "interrupt"}},
        {"type": "user", "message": {"content": [{"type": "text", "text": "/compact"}]}},
    ]
    for line in lines:
        validator("input").validate(line)
    words = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--model", f"{protocol}/test")
    with ServerThread(script, window=32_000) as server:
        done = run(
            *words,
            server=server,
            input="\n".join(map(json.dumps, [*lines[:6], *lines[7:]])),
            environ={"TENUTO_COMPACTION__BACKGROUND": "false", "TENUTO_TOOLS__WEB_SEARCH": "true"},
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found, done.stderr
    for line in found:
        validator("output").validate(line)
    kinds = {(line["type"], line.get("subtype", "")) for line in found}
    assert kinds >= {
        *(("system", one) for one in ("init", "notice", "api_retry", "compact_boundary")),
        *(("assistant", ""), ("user", "")),
        *(("result", one) for one in ("error_calls_refused", "success")),
    }
    blocks = {block["type"] for line in found if "message" in line for block in line["message"]["content"]}
    assert blocks >= {"text", "tool_use", "tool_result"} | ({"web_search"} if protocol != "openai-chat" else set())
    results = [block for line in found if line["type"] == "user" for block in line["message"]["content"]]
    assert "image" in {inner["type"] for block in results for inner in block.get("content", ())}


ENDS = {
    "error_cut_off": ([Reply("half", stop="max_tokens")] * 9, ()),
    "error_declined": ([Reply("no", stop="refusal")], ()),
    "error_limit_reached": ([Reply(tool_calls=[Call("glob", {"pattern": "*"})])] * 2, ("--max-turns", "1")),
    "error_during_execution": ([HttpError(401)], ()),
    "error_calls_refused": ([Reply(tool_calls=[Call("bash", {"command": "touch x"})]), Reply("No.")], ()),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_run_fits(run, protocol, end):  # noqa: F811
    script, options = ENDS[end]
    with ServerThread(list(script)) as server:
        words = ("-p", "go", "--output-format", "stream-json", "--model", f"{protocol}/test", *options)
        done = run(*words, server=server)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for line in found:
        validator("output").validate(line)
    assert found[-1]["subtype"] == end


def test_an_interrupt_has_its_response_and_its_result(run):  # noqa: F811
    lines = [
        {"type": "user", "message": {"content": "go"}},
        {"type": "control_request", "request_id": "7", "request": {"subtype": "interrupt"}},
    ]
    words = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--model", "openai-chat/test")
    with ServerThread(lambda _request: Reply("slow", delay=0.5)) as server:
        done = run(*words, server=server, input="\n".join(map(json.dumps, lines)))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for line in found:
        validator("output").validate(line)
    assert {"control_response", "result"} <= {line["type"] for line in found}


@pytest.mark.parametrize("kind", [*WRITTEN, *READ], ids=lambda kind: kind.__name__)
def test_a_line_without_what_it_needs_fits_nothing(kind):
    """The schema tells kinds apart: nothing is accepted because another kind asks for less."""
    schema = stream_schema()["$defs"][kind.__name__]
    assert "type" in schema["required"]
    way = validator("output" if kind in WRITTEN else "input")
    assert not way.is_valid({name: schema["properties"][name]["enum"][0] for name in ("type",)})
    assert not way.is_valid({})


texts = st.text(max_size=20)
blocks = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, texts),
        st.just({"type": "image", "source": {}}),
        st.just({"type": "text"}),
        texts,
    ),
    max_size=3,
)
messages = st.one_of(
    st.builds(lambda content: {"type": "user", "message": {"content": content}}, st.one_of(texts, blocks, st.none())),
    st.builds(
        lambda more, subtype: {"type": "control_request", "request": {"subtype": subtype}, **more},
        st.sampled_from([{}, {"request_id": "1"}]),
        st.sampled_from(["interrupt", "other"]),
    ),
    st.dictionaries(st.sampled_from(["type", "message", "request"]), texts, max_size=3),
)


@given(messages)
def test_what_is_read_fits_the_schema_and_what_fits_is_read(message):
    try:
        read = read_message(msgspec.json.encode(message))
    except BadMessageError as error:
        assert not validator("input").is_valid(message) or "no text" in str(error) or "none of" in str(error)
        if validator("input").is_valid(message):
            content = message["message"]["content"]
            said = content if isinstance(content, str) else "".join(block["text"] for block in content)
            assert not said.strip(), "only an empty prompt fits the schema and is no message"
        return
    assert validator("input").is_valid(message)
    assert isinstance(read, Interrupt) == (message["type"] == "control_request")


def test_print_mode_needs_no_validator(tmp_path):
    code = "import sys, tenuto.frontend.print, tenuto.frontend.stream; print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
