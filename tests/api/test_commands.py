"""Slash commands, the queue, and changes of model, effort and mode, as programs and front-ends ask for them."""

from __future__ import annotations

import asyncio

import pytest

import tenuto
from tenuto.command.outcome import Choose, Say
from tenuto.core.start import Start
from tenuto.protocol.entry import NoticeEntry
from tenuto.protocol.event import CallRefusedEvent, CommandProgressEvent, ModeChangedEvent, TaskSettledEvent
from tenuto.tool.search import search
from tests.api.using import options_of, using
from tests.core.compacting import is_summary_request
from tests.server import Call, Hang, HttpError, Reply, ScriptedServer, ServerThread
from tests.tool.mcp.servers import as_json

WRITE = Call("write", {"path": "a.txt", "content": "hello\n"})


def command_file(used, name: str, text: str) -> None:
    place = used.options["home"] / "commands"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.md").write_text(text)


# --- commands ---


@pytest.mark.parametrize("line", ["/mode", "mode", "  /mode "])
async def test_a_command_says_something_and_no_model_is_asked(tmp_path, line):
    async with using(tmp_path, []) as used:
        heard = []
        let_go = used.agent.hear_commands(lambda text, outcome: heard.append((text, outcome)))
        answer = await used.agent.command(line)
        let_go()
        await used.agent.command("/mode")
        ((text, outcome),) = heard
        assert (answer.text, answer.outcome, answer.turns) == (text, "completed", 0)
        assert isinstance(outcome, Choose) and "plan" in text
        assert used.server.requests == []


async def test_a_command_that_has_the_model_work_returns_its_answer(tmp_path):
    async with using(tmp_path, [Reply("It is tidy.")]) as used:
        command_file(used, "tidy", "Tidy up $1.")
        answer = await used.agent.command("/tidy src")
        assert (answer.text, answer.turns) == ("It is tidy.", 1)
        assert used.server.requests[0].last_user.startswith("/tidy src\n\nTidy up src.")


async def test_an_interrupt_stops_a_command_that_takes_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "TELL_SECONDS", 0.001)
    async with using(tmp_path, [Reply("Well.")]) as used:
        for number in range(8_000):
            used.agent.runtime.live.session.append(NoticeEntry(text=f"note {number}: all is `well`", level="info"))
        heard = asyncio.Event()
        used.agent.subscribe(lambda event: heard.set() if isinstance(event, CommandProgressEvent) else None)
        command = asyncio.create_task(used.agent.command("/export html"))
        await asyncio.wait_for(heard.wait(), 60)
        await used.agent.interrupt()
        answer = await asyncio.wait_for(command, 60)
        assert (answer.outcome, answer.text) == ("interrupted", "")
        assert [*(used.options["home"] / "exports").iterdir()] == []
        assert (await used.agent.run("hello")).text == "Well."


async def test_a_command_whose_caller_is_cancelled_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "TELL_SECONDS", 0.001)
    async with using(tmp_path, [Reply("Well.")]) as used:
        for number in range(8_000):
            used.agent.runtime.live.session.append(NoticeEntry(text=f"note {number}: all is `well`", level="info"))
        told = []
        used.agent.subscribe(lambda event: told.append(event) if isinstance(event, CommandProgressEvent) else None)
        command = asyncio.create_task(used.agent.command("/export html"))
        while not told:
            await asyncio.sleep(0.001)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command
        while told[-1].text:
            await asyncio.sleep(0.001)
        assert [*(used.options["home"] / "exports").iterdir()] == []


async def test_a_command_with_a_schema_is_asked_again_with_that(tmp_path):
    async with using(tmp_path, [Reply("Three."), Reply("[3]")]) as used:
        command_file(used, "count", "Count them.")
        answer = await used.agent.command("/count", schema=list[int])
        assert (answer.value, answer.turns) == ([3], 2)
        assert "fits this schema" in used.server.requests[1].last_user


async def test_how_the_work_of_a_command_ends_is_its_outcome_and_a_later_command_has_its_own(tmp_path):
    async with using(tmp_path, lambda _request: HttpError(401)) as used:
        assert "nothing to compact" in (await used.agent.command("/compact")).text
        command_file(used, "tidy", "Tidy up.")
        failed = await used.agent.command("/tidy")
        assert failed.outcome == "failed" and failed.error
        later = await used.agent.command("/cost")
        assert (later.outcome, later.error) == ("completed", ""), "and not how the last turn ended"


def compacting(request):
    return Reply("## Goal\nGo on.") if is_summary_request(request) else Reply("fine " * 600)


async def test_a_command_compacts_and_a_preview_is_its_text(tmp_path):
    async with using(tmp_path, compacting, server={"window": 32_000}) as used:
        for number in range(6):
            await used.agent.run(f"question {number} " + "because " * 300)
        proposed = await used.agent.command("/compact --preview")
        assert proposed.text.startswith("proposed, not written")
        before = used.agent.runtime.live.measure().tokens
        compacted = await used.agent.command("/compact the numbers")
        assert (compacted.outcome, compacted.text[:20]) == ("completed", "compacted (manual): ")
        assert used.agent.runtime.live.measure().tokens < before


async def test_what_is_no_command_is_told_from_one(tmp_path):
    async with using(tmp_path, []) as used:
        command_file(used, "tidy", "Tidy up.")
        typed = ["/mode edits", "/tidy", "/etc/passwd is what?", "hello", "", "/", "/tidyy"]
        assert [await used.agent.is_command(text) for text in typed] == [True, True, *[False] * 5]
        with pytest.raises(tenuto.UsageError, match="no command /tidyy"):
            await used.agent.command("/tidyy")
        for line in ("", " / "):
            with pytest.raises(tenuto.UsageError, match="line takes"):
                await used.agent.command(line)
        assert used.server.requests == []


async def test_a_command_that_opens_another_session_takes_the_agent_there(tmp_path):
    async with using(tmp_path, lambda request: Reply(request.last_user.split()[0])) as used:
        first = (await used.agent.run("one")).session_id
        moved = await used.agent.command("/new")
        assert moved.session_id == used.agent.session_id != first
        assert moved.usage.total == 0
        assert (await used.agent.run("two")).session_id == used.agent.session_id
        assert "one" not in str([item.text for item in used.server.requests[-1].items if item.kind == "user"])


# --- interrupts and the queue ---


async def test_an_interrupt_while_a_prompt_is_being_sent_stops_it(tmp_path):
    """What is sent waits for extensions first: nothing runs yet that could be stopped."""
    entered, free = asyncio.Event(), asyncio.Event()

    def setup(api) -> None:
        api.on("session_opened")(lambda _event: None)

    async with using(tmp_path, lambda _request: Reply("Too late."), extensions=[setup]) as used:
        submit = used.agent.runtime.submit_prompt

        async def slowly(parts, **more):
            entered.set()
            await free.wait()
            return await submit(parts, **more)

        used.agent.runtime.submit_prompt = slowly
        task = asyncio.create_task(used.agent.run("go"))
        await entered.wait()
        await used.agent.interrupt()
        free.set()
        assert (await asyncio.wait_for(task, 20)).outcome == "interrupted"
        used.agent.runtime.submit_prompt = submit
        assert (await used.agent.run("and now?")).text == "Too late."


async def test_prompts_that_stand_in_the_queue_are_answered_together(tmp_path):
    gate = [Reply("One.", delay_per_event=0.05), Reply("Two."), Reply("Three.")]
    async with using(tmp_path, gate) as used:
        first = asyncio.create_task(used.agent.run("one"))
        await used.server.wait_for_requests(1)
        with pytest.raises(tenuto.AgentBusyError):
            await used.agent.run("two")
        answers = await asyncio.gather(first, used.agent.run("two", queue=True))
        assert [(one.text, one.outcome, one.turns) for one in answers] == [("Two.", "completed", 2)] * 2
        assert (await used.agent.run("three", queue=True)).turns == 1, (
            "with nothing before it, it has a result of its own"
        )


@pytest.mark.parametrize("drop", [True, False])
async def test_an_interrupt_lets_go_of_the_queue_where_it_is_told_to(tmp_path, drop):
    left = [Hang(), Reply("Fine."), Reply("Fine.")]
    async with using(tmp_path, lambda _request: left.pop(0)) as used:
        tasks = [asyncio.create_task(used.agent.run("first"))]
        await used.server.wait_for_requests(1)
        tasks.append(asyncio.create_task(used.agent.run("second", queue=True)))
        while not used.agent.runtime.live.session.state.queue:
            await asyncio.sleep(0)
        await used.agent.interrupt(drop_queue=drop)
        assert [(await task).outcome for task in tasks] == ["interrupted", "interrupted"]
        assert bool(used.agent.runtime.live.session.state.queue) is not drop
        await used.agent.run("third")
        assert ("second" in str([item.text for item in used.server.requests[-1].items])) is not drop


async def test_a_no_that_stops_ends_the_run(tmp_path):
    def approve(request):
        return tenuto.Deny("not so", stop=True)

    async with using(tmp_path, [Reply(tool_calls=[WRITE]), Reply("Well?")], approve=approve) as used:
        assert (await used.agent.run("write it")).outcome == "interrupted"
        assert not (tmp_path / "work" / "a.txt").exists()
        answer = await used.agent.run("and now?")
        assert (answer.text, len(used.server.requests)) == ("Well?", 2)
        assert [event.outcome for event in used.of(TaskSettledEvent)] == ["interrupted", "completed"]


# --- model, effort, mode ---


async def test_another_model_and_effort_answer_from_then_on(tmp_path):
    async with using(tmp_path, lambda _request: Reply("Fine.")) as used:
        agent = used.agent
        assert (agent.model, agent.effort) == ("openai-chat/test", "default")
        await agent.run("one")
        await agent.set_model("anthropic/test")
        await agent.run("two")
        assert [request.protocol for request in used.server.requests] == ["chat", "anthropic"]
        assert agent.model == "anthropic/test"
        assert {"default", "high"} <= set(agent.efforts)
        await agent.set_effort("high")
        assert (agent.model, agent.effort) == ("anthropic/test", "high")
        await agent.set_effort("default")
        assert agent.effort == "default"


WRONG = [
    ("set_model", "nothing", "provider/name"),
    ("set_model", 42, "model takes"),
    ("set_model", "openai-chat/tesst", "does not list"),
    ("set_model", "anthropic/test:max-power", "anthropic"),
    ("set_effort", "more", "no effort “more”"),
    ("set_mode", "wild", "mode takes ask, edits, auto or plan"),
    ("set_mode", None, "mode takes"),
]


@pytest.mark.parametrize(("method", "value", "word"), WRONG, ids=str)
async def test_what_does_not_exist_is_refused_and_nothing_changes(tmp_path, method, value, word):
    async with using(tmp_path, []) as used:
        before = used.agent.model, used.agent.effort, used.agent.mode
        with pytest.raises((tenuto.UsageError, tenuto.ModelError), match=word):
            await getattr(used.agent, method)(value)
        assert before == (used.agent.model, used.agent.effort, used.agent.mode)


async def test_a_smaller_model_is_there_when_the_context_is_small_enough_for_it(tmp_path):
    small = {"models": {"anthropic/test": {"context_window": 16_000}, "openai-chat/test": {"context_window": 64_000}}}
    async with using(tmp_path, compacting, settings=small) as used:
        for number in range(10):
            await used.agent.run(f"question {number} " + "because " * 600)
        tokens = used.agent.runtime.live.measure().tokens
        await used.agent.set_model("anthropic/test")
        assert used.agent.model == "anthropic/test"
        assert used.agent.runtime.live.measure().tokens < tokens


async def test_another_mode_holds_from_the_next_call_on(tmp_path):
    script = [Reply(tool_calls=[WRITE]), Reply("No."), Reply(tool_calls=[WRITE]), Reply("Done.")]
    async with using(tmp_path, script, mode="ask") as used:
        refused = await used.agent.run("write it")
        assert [call.name for call in refused.refused] == ["write"]
        await used.agent.set_mode("edits")
        assert used.agent.mode == "edits"
        assert (await used.agent.run("again")).changed_files == (str(tmp_path / "work" / "a.txt"),)
        assert [event.mode for event in used.of(ModeChangedEvent)] == ["edits"]
        assert len(used.of(CallRefusedEvent)) == 1


# --- opening ---


async def test_an_agent_of_a_start_is_one_like_others(tmp_path):
    async with ScriptedServer([Reply("One."), Reply(tool_calls=[WRITE]), Reply("Done.")]) as server:
        options = options_of(tmp_path, server)
        start = Start(**options, interactive=False)
        async with tenuto.Agent.of(start) as agent:
            assert (await agent.run("first")).text == "One."
        assert (agent.parting, agent.session_id != "") == ("", True)
        asked = []

        async def approve(request):
            asked.append(request.tool)
            return tenuto.Allow()

        start = Start(**options, interactive=False, resume=agent.session_id, mode="ask")
        async with tenuto.Agent.of(start, approve) as agent:
            assert (await agent.run("second")).text == "Done."
        assert asked == ["write"]


async def test_what_holds_is_not_known_of_an_agent_that_is_not_open(tmp_path):
    async with ScriptedServer([]) as server:
        agent = tenuto.Agent(**options_of(tmp_path, server))
        for name in ("model", "effort", "efforts", "mode"):
            with pytest.raises(tenuto.AgentClosedError):
                getattr(agent, name)
        for ask in (agent.command("/mode"), agent.is_command("/mode"), agent.set_mode("ask"), agent.interrupt()):
            with pytest.raises(tenuto.AgentClosedError):
                await ask


async def test_a_server_of_the_program_is_there_without_any_file(tmp_path):
    servers = as_json(own="good")["mcpServers"]
    script = [Reply(tool_calls=[Call("mcp__own__echo", {"text": "hello"})]), Reply("Done.")]
    async with using(tmp_path, script, servers=servers, mode="auto", allow=["mcp__own"]) as used:
        assert (await used.agent.run("go")).text == "Done."
        assert "hello" in used.server.requests[-1].items[-1].text


@pytest.mark.parametrize(
    ("servers", "word"),
    [
        (["own"], "servers takes"),
        ({"own": "text"}, "servers takes"),
        ({"own": {}}, "servers: own: it needs a command or a url"),
        ({"own": {"command": 1}}, "servers: own"),
        ({"o/w": {"command": "sh"}}, "servers: o/w: a name has"),
    ],
    ids=str,
)
def test_a_server_that_is_none_is_a_usage_error(tmp_path, servers, word):
    with pytest.raises(tenuto.UsageError, match=word):
        tenuto.Agent(tmp_path, home=tmp_path / "home", servers=servers)


def test_commands_without_async(tmp_path):
    with ServerThread([Reply("Fine.")]) as server, tenuto.SyncAgent(**options_of(tmp_path, server)) as agent:
        said = []
        agent.hear_commands(lambda text, outcome: said.append(outcome))
        assert agent.is_command("/title x") and not agent.is_command("title")
        agent.command("/title of a script")
        assert agent.command("/status").text
        agent.set_mode("plan")
        agent.set_model("anthropic/test:low")
        agent.set_effort("high")
        assert (agent.mode, agent.model, agent.effort, "high" in agent.efforts) == (
            "plan",
            "anthropic/test",
            "high",
            True,
        )
        assert agent.run("go", queue=True).text == "Fine."
        agent.interrupt(drop_queue=True)
        assert isinstance(said[-1], Say)
    assert agent.parting == ""
