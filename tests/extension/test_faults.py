"""Whatever an extension does wrong: the session starts, no turn is lost, and one clear line says what it was."""

from __future__ import annotations

import asyncio
import re
import textwrap
from itertools import pairwise

import pytest

from tenuto.command.outcome import Say
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ContextUsageEvent,
    ExtensionStatusEvent,
    NoticeEvent,
    ToolOutputEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import OwnView
from tenuto.protocol.operation import AnswerApprovalOperation
from tests.core.compacting import interrupt, until
from tests.core.harness import agent, reopened
from tests.extension.extending import extend, notices
from tests.server import Call, Reply, ScriptedServer

QUICK = {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": "0.5"}
TOOL = '''
import asyncio, os, sys, threading, time
from tenuto.extension import *

def setup(tenuto):
    @tenuto.tool(read_only={read_only}, timeout={timeout})
    {prefix}def probe(what: str = "", count: int = 1{more}):
        """Do something."""
{body}
'''


def tool(body: str, *, read_only: bool = True, timeout: float = 5, prefix: str = "", more: str = "") -> str:
    return TOOL.format(
        body=textwrap.indent(body, " " * 8), read_only=read_only, timeout=timeout, prefix=prefix, more=more
    )


def faults(running) -> list[str]:
    return [text for text in notices(running) if "extension" in text]


SLOW_TO_LOAD = {"TENUTO_EXTENSIONS__LOAD_TIMEOUT": "5"}
"""Long enough for what does load, on a busy machine too."""
LOADING = [
    ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name' (mine.py:1)"),
    ("def setup(tenuto:\n", "SyntaxError"),
    ("import time\ntime.sleep(600)\n", "no answer within 5 seconds"),
    ("def setup(tenuto):\n    while True:\n        __import__('time').sleep(0.01)\n", "no answer within 5 seconds"),
    ("raise SystemExit(3)\n", "it tried to end the program (SystemExit)"),
    ("def setup(tenuto):\n    raise KeyError('x')\n", "KeyError: 'x' (mine.py:2)"),
    ("value = 1\n", "it has no function setup(tenuto)"),
    ("def setup(tenuto):\n    @tenuto.tool\n    def x(a):\n        'Text.'\n", "the tool x: a has no type (mine.py:2)"),
    ("def setup(tenuto):\n    @tenuto.tool\n    def x(a: int): ...\n", "the tool x has no description"),
    ("def setup(tenuto):\n    @tenuto.tool\n    def x(a: type(tenuto)):\n        'T.'\n", "the tool x: "),
    ("def setup(tenuto):\n    @tenuto.command('two words')\n    def x(a): ...\n", "is no name for a command"),
    ("def setup(tenuto):\n    tenuto.provider('p')\n", "needs either base_url or stream"),
    ("def setup(tenuto):\n    tenuto.on('tool_reslt', print)\n", "did you mean tool_result?"),
    ("def setup(tenuto):\n    tenuto.renderer('none')(print)\n", "there is no tool none of this extension"),
]


@pytest.mark.parametrize(("text", "said"), LOADING, ids=range(len(LOADING)))
async def test_what_cannot_be_loaded_is_one_line_and_the_turn_goes_on(tmp_path, text, said):
    extend(tmp_path, text)
    extend(tmp_path, tool("return 'works'"), "other")
    environ = SLOW_TO_LOAD if "no answer" in said else {}
    async with agent(tmp_path, [Reply(tool_calls=[Call("probe", {})]), Reply("done")], environ=environ) as running:
        assert (await running.ask("go")).outcome == "completed"
        (line,) = (text for text in faults(running) if not text.startswith("Waiting for"))
        assert line.startswith("The extension mine (")
        assert said in line
        assert running.of(ToolResultEvent)[0].message.parts[0].text == "works"


async def test_a_slow_one_is_waited_for_and_several_load_side_by_side(tmp_path):
    begun, go = tmp_path / "begun", tmp_path / "go"
    begun.mkdir()
    for name in ("a", "b", "c"):  # each waits for the two others: one after the other none of them would end
        waits = f"while len(os.listdir({str(begun)!r})) < 3 or not os.path.exists({str(go)!r}): time.sleep(0.01)"
        text = f"import os, time\nopen({str(begun / name)!r}, 'w')\n{waits}\n"
        extend(tmp_path, text + tool("return 1").replace("probe", f"probe_{name}"), name)
    extend(tmp_path, "import time\ntime.sleep(60)\n", "hanging")
    environ = {"TENUTO_EXTENSIONS__LOAD_TIMEOUT": "5"}
    async with agent(tmp_path, [Reply("done")], environ=environ) as running:
        asking = asyncio.ensure_future(running.ask("go"))
        await until(lambda: faults(running))
        go.touch()
        await asking
        assert [name for name in running.server.requests[0].tool_names if name.startswith("probe")] == [
            "probe_a",
            "probe_b",
            "probe_c",
        ]
        waiting, named = faults(running)
        assert waiting == "Waiting for extensions, 5 seconds at most: a, b, c, hanging"
        assert named.startswith("The extension hanging (")


CALLS = [
    (tool("raise RuntimeError('broken')"), {}, "The tool probe failed: RuntimeError: broken (mine.py:9)"),
    (tool("sys.exit(3)"), {}, "it tried to end the program (SystemExit)"),
    (tool("return object()"), {}, "it returned object, which is neither a text, nor JSON, nor a Result"),
    (tool("return {1: object()}"), {}, "what it returned is no JSON"),
    (tool("return Result(text=7)"), {}, "the text of its Result is int"),
    (tool("return Result(details='x' * 200_000)"), {}, "the details of its Result have"),
    (tool("time.sleep(60)", timeout=0.3), {}, "no answer within 0.3 seconds"),
    (tool("await asyncio.sleep(60)", timeout=0.3, prefix="async "), {}, "no answer within 0.3 seconds"),
    (tool("raise asyncio.CancelledError", prefix="async "), {}, "it cancelled itself"),
    (tool("return 'x'"), {"count": "many"}, "$.count"),
    (tool("return 'x'"), {"other": 1}, "other"),
]


@pytest.mark.parametrize(("text", "arguments", "said"), CALLS, ids=range(len(CALLS)))
async def test_a_call_that_goes_wrong_is_a_result_that_says_why(tmp_path, text, arguments, said):
    extend(tmp_path, text)
    async with agent(tmp_path, [Reply(tool_calls=[Call("probe", arguments)]), Reply("done")]) as running:
        assert (await running.ask("go")).outcome == "completed"
        result = running.of(ToolResultEvent)[0].message
        assert result.is_error
        assert said in result.parts[0].text
        assert len(faults(running)) <= 1


async def test_a_flood_is_bounded(tmp_path):
    extend(tmp_path, tool("return 'flood ' * 20_000_000"))
    async with agent(tmp_path, [Reply(tool_calls=[Call("probe", {})]), Reply("done")]) as running:
        assert (await running.ask("go")).outcome == "completed"
        result = running.of(ToolResultEvent)[0].message
        assert len(result.parts[0].text) < 40_000
        assert result.output_size < 2_000_000
        assert sum(path.stat().st_size for path in running.session.directory.rglob("*") if path.is_file()) < 5_000_000


async def test_a_renderer_that_fails_leaves_the_plain_result_and_is_named_once(tmp_path):
    text = tool("return 'plain'") + "\n    tenuto.renderer('probe')(lambda arguments, result: 1 / 0)\n"
    extend(tmp_path, text)
    calls = [Reply(tool_calls=[Call("probe", {})]), Reply(tool_calls=[Call("probe", {})]), Reply("done")]
    async with agent(tmp_path, calls) as running:
        await running.ask("go")
        results = [event.message for event in running.of(ToolResultEvent)]
        assert [result.parts[0].text for result in results] == ["plain", "plain"]
        assert not any(isinstance(view, OwnView) for result in results for view in result.ui)
        assert faults(running) == [
            "The extension mine failed in the renderer of probe: ZeroDivisionError: division by zero (mine.py:11)"
        ]


async def test_a_handler_of_events_that_fails_or_hangs_is_named_once_and_loses_no_turn(tmp_path):
    extend(tmp_path, "def setup(tenuto):\n    tenuto.on('tool_result', lambda event: 1 / 0)\n", "broken")
    extend(
        tmp_path,
        "import time\ndef setup(tenuto):\n    tenuto.on('tool_result', lambda event: time.sleep(60))\n",
        "slow",
    )
    extend(tmp_path, tool("return 'x'"))
    script = [Reply(tool_calls=[Call("probe", {})])] * 3 + [Reply("done")]
    async with agent(tmp_path, script, environ=QUICK) as running:
        assert (await running.ask("go")).outcome == "completed"
        await until(lambda: len(faults(running)) >= 3)
        assert sum("broken failed in tool_result: ZeroDivisionError" in text for text in faults(running)) == 1
        assert any(text.endswith("it is not asked any more") for text in faults(running))


async def test_a_thread_that_dies_is_named_and_writes_nothing_to_the_screen(tmp_path, capfd):
    extend(tmp_path, tool("threading.Thread(target=lambda: 1 / 0).start()\nreturn 'x'"))
    async with agent(tmp_path, [Reply(tool_calls=[Call("probe", {})]), Reply("done")]) as running:
        assert (await running.ask("go")).outcome == "completed"
        await until(lambda: faults(running))
        assert "failed in a thread of its own: ZeroDivisionError" in faults(running)[0]
    assert "Traceback" not in capfd.readouterr().err


TAKEN = """
from tenuto.extension import Model

def setup(tenuto):
    @tenuto.tool(name="read")
    def one(): "Text."
    @tenuto.tool(name="mcp__x__y")
    def two(): "Text."
    @tenuto.command("model")
    def three(argument): ...
    @tenuto.command("quit")
    def four(argument): ...
    async def stream(request): yield "x"
    tenuto.provider("openai", models=[Model(name="x")], stream=stream)
    @tenuto.command("fine")
    def five(argument): return "mine"
"""


async def test_names_that_are_taken_are_refused_and_named(tmp_path):
    extend(tmp_path, TAKEN)
    extend(tmp_path, "def setup(tenuto):\n    @tenuto.command('fine')\n    def x(argument): return 'other'\n", "other")
    async with agent(tmp_path, [Reply("done")]) as running:
        await running.ask("go")
        assert faults(running) == [
            "The tool read of the extension mine is left out: Tenuto itself has it",
            "The tool mcp__x__y of the extension mine is left out: Tenuto itself has it",
            "The command model of the extension mine is left out: Tenuto itself has it",
            "The command quit of the extension mine is left out: Tenuto itself has it",
            "The provider openai of the extension mine is left out: Tenuto itself has it",
            "The command fine of the extension other is left out: the extension mine has it",
        ]
        assert await running.runtime.run_command("/fine") == [Say("mine")]


COMMANDS = [
    ("return 7", "/go of the extension mine returned int, not a text"),
    ("raise ValueError('no')", "The extension mine failed in /go: ValueError: no (mine.py:5)"),
    ("time.sleep(60)", "no answer within 0.5 seconds"),
]


@pytest.mark.parametrize(("body", "said"), COMMANDS)
async def test_a_command_that_fails_says_so(tmp_path, body, said):
    extend(
        tmp_path, f"import time\ndef setup(tenuto):\n    @tenuto.command('go')\n    def go(argument):\n        {body}\n"
    )
    async with agent(tmp_path, [Reply("done")], environ=QUICK) as running:
        (answer,) = await running.runtime.run_command("/go")
        assert said in answer.text
        assert answer.level == "warning"
        assert (await running.ask("go on")).outcome == "completed"


STREAMS = [
    ("yield 7", "yielded int, which is no part of an answer"),
    ("raise OSError('no line'); yield ''", "the provider own failed: OSError: no line (mine.py:5)"),
    ("yield 'x' * 5_000_000", "answered with more than"),
    ("yield ToolCallPart(id='', name='x')", "yielded a tool call without an id"),
    ("if False: yield ''", "answered with nothing"),
    ("raise SystemExit; yield ''", "it tried to end the program"),
]


@pytest.mark.parametrize(("body", "said"), STREAMS)
async def test_a_provider_that_fails_is_an_error_of_the_model(tmp_path, body, said):
    head = "from tenuto.extension import Model\nfrom tenuto.protocol.part import ToolCallPart\n"
    extend(
        tmp_path,
        f"{head}def setup(tenuto):\n    async def stream(request):\n        {body}\n"
        "    tenuto.provider('own', models=[Model(name='one', context_window=32_000)], stream=stream)\n",
    )
    environ = {"TENUTO_RETRY__ATTEMPTS": "0"}
    async with agent(tmp_path, [], model="own/one", environ=environ) as running:
        settled = await running.ask("go")
        assert settled.outcome == "failed"
        assert said in settled.error


async def test_a_model_that_a_provider_does_not_have_is_named_with_those_that_it_has(tmp_path):
    extend(
        tmp_path,
        "from tenuto.extension import Model\ndef setup(tenuto):\n    async def stream(request): yield 'x'\n"
        "    tenuto.provider('own', models=[Model(name='one')], stream=stream)\n",
    )
    with pytest.raises(Exception, match=r"the provider own has no model “two”.*it has one"):
        async with agent(tmp_path, [], model="own/two", interactive=False):
            pass


# --- what extensions may do in a session ---


async def test_a_tool_asks_unless_it_only_reads_and_plan_mode_refuses_what_does_not(tmp_path):
    for read_only, mode, is_run in ((True, "plan", True), (False, "plan", False), (False, "auto", True)):
        extend(tmp_path, tool("return 'ran'", read_only=read_only))
        script = [Reply(tool_calls=[Call("probe", {})]), Reply("done")]
        async with agent(tmp_path, script, mode=mode, sandboxed=False) as running:
            await running.ask("go")
            assert (running.of(ToolResultEvent)[0].message.parts[0].text == "ran") is is_run


async def test_an_answer_for_the_session_covers_the_tool_from_then_on(tmp_path):
    extend(tmp_path, tool("return 'ran'", read_only=False))
    call = Reply(tool_calls=[Call("probe", {"what": "now"})])
    async with agent(tmp_path, [call, call, Reply("done")], mode="ask") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        assert (request.tool, request.summary) == ("probe", 'what="now"')
        assert request.detail.startswith("probe of the extension mine")
        assert [kind.rules for kind in request.kinds] == [("tool(probe)",)]
        operation = AnswerApprovalOperation(
            session_id=running.runtime.session_id, request_id=request.request_id, decision="session"
        )
        await running.runtime.submit(operation)
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        assert [event.message.parts[0].text for event in running.of(ToolResultEvent)] == ["ran", "ran"]
        assert len(running.of(ApprovalRequestedEvent)) == 1


async def test_a_rule_of_the_users_covers_a_tool_of_an_extension(tmp_path):
    extend(tmp_path, tool("return 'ran'", read_only=False))
    for rules, text in (("allow", "ran"), ("deny", "denies this probe call")):
        environ = {f"TENUTO_APPROVALS__{rules.upper()}": '["tool(probe)"]'}
        script = [Reply(tool_calls=[Call("probe", {})]), Reply("done")]
        async with agent(tmp_path, script, mode="ask", interactive=False, environ=environ) as running:
            await running.ask("go")
            assert text in running.of(ToolResultEvent)[0].message.parts[0].text


async def test_questions_are_counted_bounded_and_end_with_the_turn(tmp_path):
    body = "return [len(await tenuto.ask_model(what, max_tokens=count)) for _ in range(count)]"
    extend(tmp_path, tool(body, prefix="async "))

    def script(request):
        text = request.items[-1].text
        if text == "how long?":
            return Reply("12345")
        if text == "hang":
            return Reply("never", delay_per_event=60)
        calls = [item for item in request.turn if item.kind == "call"]
        if calls:
            return Reply("done")
        what, count = re.findall(r"please (\S+) (\d+)", request.last_user)[-1]
        return Reply(tool_calls=[Call("probe", {"what": what.replace("_", " "), "count": int(count)})])

    async with agent(tmp_path, script) as running:
        await running.ask("please how_long? 3")
        assert running.of(ToolResultEvent)[-1].message.parts[0].text == "[\n  5,\n  5,\n  5\n]"
        spent = running.session.state.usage
        assert spent == running.of(ContextUsageEvent)[-1].total
        assert sum(type(entry).__name__ == "UsageEntry" for entry in running.session.everything()) == 3
        await running.ask("please how_long? 21")
        assert "20 questions were asked" in running.of(ToolResultEvent)[-1].message.parts[0].text
        await running.send("please hang 1")
        await until(lambda: running.runtime.live.task.asking)
        await interrupt(running)
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        await until(lambda: not running.runtime.live.task.asking)
        assert (await running.ask("please how_long? 1")).outcome == "completed"


async def test_an_entry_goes_to_the_end_and_changes_nothing_that_was_sent(tmp_path):
    extend(tmp_path, tool("tenuto.add_entry('ADDED-NONCE ' + what)\nreturn 'ok'"))
    script = [
        Reply(tool_calls=[Call("probe", {"what": "one"}), Call("probe", {"what": "two"})]),
        Reply(tool_calls=[Call("probe", {"what": "three"})]),
        *[Reply("done")] * 3,
    ]
    async with agent(tmp_path, script) as running:
        await running.ask("go")
        await running.ask("and again")
        requests = running.server.requests
        for before, after in pairwise(requests):
            assert after.continues(before)
        assert b"ADDED-NONCE three" in requests[-1].raw
        lines = [event.text for event in running.of(NoticeEvent) if "ADDED-NONCE" in event.text]
        assert lines == [f"Extension mine: ADDED-NONCE {word}" for word in ("one", "two", "three")]


async def test_an_entry_that_is_too_large_is_left_out_and_named(tmp_path):
    extend(tmp_path, tool("tenuto.add_entry('word ' * 100_000)\nreturn 'ok'"))
    script = [Reply(tool_calls=[Call("probe", {})]), Reply("done")]
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await running.ask("go")
        await until(lambda: faults(running))
        assert "wanted to add a text of" in faults(running)[0]


async def test_a_status_is_one_short_line_and_goes_with_its_extension(tmp_path):
    extend(tmp_path, "def setup(tenuto):\n    tenuto.show_status('one\\ntwo \\x1b[31m' + 'x' * 100)\n")
    async with agent(tmp_path, [Reply("done")]) as running:
        await running.ask("go")
        event = await running.until(ExtensionStatusEvent)
        assert event.extension == "mine"
        assert len(event.text) <= 41
        assert "\n" not in event.text
        (tmp_path / "home" / "extensions" / "mine.py").write_text("def setup(tenuto): pass\n")
        await running.runtime.run_command("/reload")
        assert [event.text for event in running.of(ExtensionStatusEvent)][1:] == [""]


async def test_a_flood_of_words_is_cut_off_and_named_once(tmp_path):
    body = """for number in range(5_000):
    tenuto.notify(f"line {number}")
    tenuto.show_status(f"{number}")
    tenuto.add_entry(f"entry {number}")
    tenuto.request_compaction()
    call.emit("x" * 1_000)
return 'ok'"""
    extend(tmp_path, tool(body, more=", *, call: ToolCall", timeout=60))
    async with agent(tmp_path, [Reply(tool_calls=[Call("probe", {})]), Reply("done")]) as running:
        assert (await running.ask("go", timeout=60)).outcome == "completed"
        await until(lambda: [event.text for event in running.of(ExtensionStatusEvent)][-1:] == ["4999"])
        assert len(running.of(ExtensionStatusEvent)) < 2_000
        assert sum(text.startswith("mine: line ") for text in notices(running)) < 1_000
        assert sum("says too much" in text for text in notices(running)) == 1
        assert sum("more than 50 texts" in text for text in notices(running)) == 1
        assert sum(len(event.text) for event in running.of(ToolOutputEvent)) == 1_000_000
        assert len(running.runtime.live.compaction.wishes) <= 20


async def test_events_are_told_in_their_order(tmp_path):
    note = tmp_path / "note"
    extend(
        tmp_path,
        "from tenuto.protocol.event import StepStartedEvent\n"
        "def setup(tenuto):\n"
        f"    note = open({str(note)!r}, 'a', buffering=1)\n"
        "    tenuto.on(StepStartedEvent, lambda event: note.write(f'step {event.step}\\n'))\n"
        "    tenuto.on('tool_result', lambda event: note.write(event.message.name + '\\n'))\n",
    )
    extend(tmp_path, tool("return 'x'"), "other")
    script = [Reply(tool_calls=[Call("probe", {})]), Reply("done")]
    async with agent(tmp_path, script) as running:
        await running.ask("go")
        await until(lambda: note.read_text().count("\n") == 3)
        assert note.read_text().split("\n")[:3] == ["step 1", "probe", "step 2"]


STRATEGY = """
from tenuto.compaction.strategy import DigestCompaction

def setup(tenuto):
    tenuto.strategy("mine_only", DigestCompaction)
"""


async def test_a_strategy_that_an_extension_registered_compacts(tmp_path):
    from tests.core.compacting import compact, compactions, fill, talk

    extend(tmp_path, STRATEGY)
    environ = {"TENUTO_COMPACTION__STRATEGY": "mine_only"}
    async with agent(tmp_path, talk(), options={"window": 32_000}, environ=environ) as running:
        await fill(running)
        await compact(running)
        assert compactions(running)[-1].rung == "digest"


async def test_what_was_sent_stays_the_same_while_extensions_come_and_go(tmp_path):
    """A resumed session goes by the tools that it was begun with; a call of one that is gone is answered."""
    extend(tmp_path, tool("return 'x'"))
    script = [Reply(tool_calls=[Call("probe", {})]), Reply("done"), Reply(tool_calls=[Call("probe", {})]), Reply("end")]
    async with ScriptedServer([*script, Reply("fresh")]) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("go")
            session = running.runtime.session_id
        (tmp_path / "home" / "extensions" / "mine.py").unlink()
        extend(tmp_path, tool("return 'y'").replace("probe", "newer"), "newer")
        async with reopened(tmp_path, server, resume=session) as running:
            await running.ask("again")
            assert server.requests[2].continues(server.requests[1])
            assert server.requests[2].body["tools"] == server.requests[0].body["tools"]
            result = running.of(ToolResultEvent)[-1].message
            assert result.is_error
            assert "There is no tool named probe" in result.parts[0].text
            await running.runtime.run_command("/reload")
            await running.ask("and now")
            names = server.requests[-1].tool_names
            assert "newer" in names and "probe" not in names
