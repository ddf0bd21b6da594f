"""The Python API as a program uses it."""

from __future__ import annotations

import asyncio
import inspect
import typing
from dataclasses import dataclass

import msgspec
import pytest

import tenuto
from tenuto.api.scripting import AgentOptions
from tenuto.core.compacting.undo import Undone
from tenuto.core.errors import TaskFailedError
from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    CallRefusedEvent,
    NoticeEvent,
    TaskSettledEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.session.library.catalog import list_sessions
from tests.api.using import options_of, using
from tests.core.compacting import is_summary_request
from tests.core.harness import PROTOCOLS
from tests.server import Call, Hang, HttpError, Reply, ScriptedServer

pytestmark = pytest.mark.matrix
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
WRITE = Call("write", {"path": "a.txt", "content": "hello\n"})


def compacting(request):
    return Reply("## Goal\nGo on.") if is_summary_request(request) else Reply("fine " * 600)


async def fill(agent) -> None:
    for number in range(6):
        await agent.run(f"question {number} " + "because " * 300)


def in_order(*replies):
    """Each reply once, whatever is asked; the last one for everything behind it."""
    left = list(replies)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


# --- prompts ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_agent_answers_and_goes_on_later(tmp_path, protocol):
    async with ScriptedServer([Reply("One."), Reply("Two."), Reply("Three.")]) as server:
        options = options_of(tmp_path, server, model=f"{protocol}/test")
        async with tenuto.Agent(**options) as agent:
            answer = await agent.run("first")
            assert (answer.text, answer.outcome, answer.turns) == ("One.", "completed", 1)
            assert answer.raise_for_outcome() is answer
            assert answer.session_id == agent.session_id
        async with tenuto.Agent(**options, resume=agent.session_id) as agent:
            second = await agent.run("second")
            assert second.text == "Two."
            assert second.usage.output < agent.usage.output, "of this prompt, and of the session"
        async with tenuto.Agent(**options, resume=True) as latest:
            assert (await latest.run("third")).text == "Three."
            assert latest.session_id == agent.session_id
        assert any("first" in item.text for item in server.requests[1].items)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_has_every_event_in_order_and_ends_with_the_answer(tmp_path, protocol):
    script = [Reply("I write.", tool_calls=[WRITE]), Reply("Done: it is written.", chunk_size=4)]
    async with using(tmp_path, script, model=f"{protocol}/test", mode="edits") as used:
        items = [item async for item in used.agent.stream("go")]
    *events, answer = items
    assert isinstance(answer, tenuto.Answer)
    assert (answer.text, answer.turns) == ("Done: it is written.", 2)
    assert answer.changed_files == (str(tmp_path / "work" / "a.txt"),)
    kinds = [type(event) for event in events]
    assert kinds.index(ToolStartedEvent) < kinds.index(ToolResultEvent) < kinds.index(TaskSettledEvent)
    text = "".join(event.text for event in events if isinstance(event, AssistantTextDeltaEvent))
    assert text == "I write.Done: it is written."


async def test_leaving_a_stream_stops_the_run_and_the_agent_can_go_on(tmp_path):
    async with using(tmp_path, in_order(Reply("tick " * 500, delay_per_event=0.02), Reply("Fine."))) as used:
        async for event in used.agent.stream("count"):
            if isinstance(event, AssistantTextDeltaEvent):
                break
        assert (await used.agent.run("and now?")).text == "Fine.", "at once: nobody has to know when it is closed"
        assert [event.outcome for event in used.of(TaskSettledEvent)] == ["interrupted", "completed"]
        with pytest.raises(tenuto.AgentBusyError):
            async for _ in used.agent.stream("and then?"):
                await used.agent.run("meanwhile")


async def test_images_go_along_from_files_and_from_bytes(tmp_path):
    async with using(tmp_path, [Reply("Two dots.")]) as used:
        (tmp_path / "work" / "dot.png").write_bytes(PNG)
        await used.agent.run("what is there?", images=["dot.png", PNG])
        (request,) = used.server.requests
        assert request.raw.count(b"data:image/png;base64,") == 2
        with pytest.raises(tenuto.UsageError, match=r"nowhere\.png"):
            await used.agent.run("and here?", images=["nowhere.png"])
        with pytest.raises(tenuto.UsageError, match="no PNG"):
            await used.agent.run("and here?", images=[b"<svg/>"])
        assert len(used.server.requests) == 1


@dataclass
class Sum:
    sum: int
    terms: list[int]


class Point(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        if self.x % 2:
            raise ValueError("x has to be even")


FITTING = [
    (Sum, '{"sum": 3, "terms": [1, 2]}', Sum(3, [1, 2])),
    (list[str], '```json\n["a", "b"]\n```', ["a", "b"]),
    (Point, '{"x": 2}', Point(2)),
    ({"type": "object", "required": ["sum"]}, '{"sum": 3}', {"sum": 3}),
]


@pytest.mark.parametrize(("schema", "text", "value"), FITTING, ids=lambda one: str(one)[:20])
async def test_an_answer_as_a_value_after_one_that_does_not_fit(tmp_path, schema, text, value):
    async with using(tmp_path, [Reply("Here you are."), Reply(text)]) as used:
        answer = await used.agent.run("add 1 and 2", schema=schema)
        assert (answer.value, answer.outcome, answer.turns) == (value, "completed", 2)
        assert "fits this schema" in used.server.requests[0].items[-1].text
        assert "does not fit the schema" in used.server.requests[1].items[-1].text


async def test_a_pydantic_model_is_a_schema(tmp_path):
    import pydantic

    class Person(pydantic.BaseModel):
        name: str
        age: int = pydantic.Field(ge=0)

    async with using(tmp_path, [Reply('{"name": "Ada", "age": 36}')]) as used:
        assert (await used.agent.run("who?", schema=Person)).value == Person(name="Ada", age=36)


async def test_what_the_type_itself_refuses_is_told_to_the_model_and_fails_in_the_end(tmp_path):
    async with using(tmp_path, [Reply('{"x": 1}')] * 3) as used:
        answer = await used.agent.run("a point", schema=Point)
        assert "x has to be even" in used.server.requests[1].items[-1].text
        assert (answer.outcome, answer.value) == ("failed", None)
        assert "x has to be even" in answer.error
        with pytest.raises(tenuto.AnswerError, match="x has to be even") as raised:
            answer.raise_for_outcome()
        assert raised.value.answer is answer


# --- limits and ends ---


async def test_limits_of_turns_and_of_time_end_a_run_and_the_agent_stays(tmp_path):
    calls = [Reply(tool_calls=[Call("glob", {"pattern": f"{number}*"})]) for number in range(9)]
    async with using(tmp_path, calls, max_turns=3) as used:
        answer = await used.agent.run("look")
        assert (answer.outcome, len(used.server.requests)) == ("limit_reached", 3)
        assert answer.error == "stopped after 3 turns (max_turns)", "the name that this API has for it"

    async with using(tmp_path, in_order(Hang(), Reply("Fine."))) as used:
        answer = await used.agent.run("wait", timeout=0.3)
        assert (answer.outcome, answer.error) == ("limit_reached", "stopped after 0.3 s (timeout)")
        assert (await used.agent.run("and now?")).text == "Fine."


async def test_a_limit_of_cost_without_a_price_is_refused_at_the_opening(tmp_path):
    async with ScriptedServer([]) as server:
        with pytest.raises(tenuto.UsageError, match="the price of openai-chat/test is not known"):
            async with tenuto.Agent(**options_of(tmp_path, server, max_cost=1.0)):
                pass
        assert server.requests == []


async def test_a_cancelled_run_is_interrupted_sends_nothing_later_and_can_be_resumed(tmp_path):
    async with ScriptedServer(in_order(Hang(), Reply("Fine."))) as server:
        options = options_of(tmp_path, server)
        async with tenuto.Agent(**options) as agent:
            settled = []
            agent.subscribe(lambda event: settled.append(event) if isinstance(event, TaskSettledEvent) else None)
            task = asyncio.create_task(agent.run("wait"))
            await server.wait_for_requests(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert settled[-1].outcome == "interrupted"
            assert (await agent.run("and now?")).text == "Fine."
        async with tenuto.Agent(**options, resume=agent.session_id) as agent:
            assert (await agent.run("and later?")).text == "Fine."
        assert len(server.requests) == 3


async def test_an_interrupt_and_the_end_of_the_agent_return_what_there_is(tmp_path):
    async with using(tmp_path, lambda _request: Hang()) as used:
        for number, end in enumerate((used.agent.interrupt, used.agent.close), 1):
            task = asyncio.create_task(used.agent.run("wait"))
            await used.server.wait_for_requests(number)
            await end()
            answer = await asyncio.wait_for(task, 60)
            assert answer.outcome == "interrupted"


async def test_an_answer_of_a_failed_run_says_why_and_raises_only_when_asked_to(tmp_path):
    async with using(tmp_path, lambda _request: HttpError(401)) as used:
        answer = await used.agent.run("go")
        assert answer.outcome == "failed"
        assert answer.error
        with pytest.raises(tenuto.AnswerError):
            answer.raise_for_outcome()


# --- the session ---


async def test_compact_preview_undo_and_redo(tmp_path):
    async with using(tmp_path, compacting, server={"window": 32_000}, temporary=True) as used:
        agent = used.agent
        with pytest.raises(TaskFailedError, match="nothing to compact"):
            await agent.compact()
        with pytest.raises(TaskFailedError, match="no compaction to undo"):
            await agent.undo()
        await fill(agent)
        plan = await agent.preview("the numbers")
        entry = await agent.compact("the numbers")
        assert entry.focus == "the numbers"
        assert plan.cut == entry.first_kept_index
        assert entry.tokens_after < entry.tokens_before
        undone = await agent.undo()
        assert isinstance(undone, Undone)
        assert undone.tokens_after > entry.tokens_after
        assert (await agent.redo()).tokens_after < undone.tokens_after
        await agent.undo(drop_later=True)
        with pytest.raises(tenuto.UsageError, match="cannot be forked"):
            agent.fork()


async def test_a_fork_goes_on_beside_its_origin(tmp_path):
    async with using(tmp_path, lambda request: Reply(request.items[-1].text)) as used:
        await used.agent.run("first")
        async with used.agent.fork() as other, used.agent.fork() as third:
            answers = await asyncio.gather(
                *(one.run(f"of {name}") for one, name in zip((used.agent, other, third), "abc", strict=True))
            )
            assert len({answer.session_id for answer in answers}) == 3
            assert [answer.text for answer in answers] == [f"of {one}" for one in "abc"]
        for request in used.server.requests[1:]:
            assert len([item for item in request.items if item.text.startswith("of ")]) == 1
            assert any("first" in item.text for item in request.items)


async def test_settings_rules_and_directories_win_for_this_agent(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text('mode = "auto"\n[compaction]\nenabled = true\n')
    (tmp_path / "more").mkdir()
    script = [Reply(tool_calls=[WRITE, Call("bash", {"command": "echo hello"})]), Reply("Done.")]
    options = {
        "settings": {"compaction": {"enabled": False}},
        "mode": "ask",
        "allow": ["write(a.txt)"],
        "deny": ["bash(echo *)"],
        "directories": [tmp_path / "more"],
    }
    async with using(tmp_path, script, **options) as used:
        assert used.agent.runtime.settings.compaction.enabled is False
        answer = await used.agent.run("go")
        assert [call.name for call in answer.refused] == ["bash"]
        assert answer.changed_files
        assert used.of(CallRefusedEvent)[0].reason.startswith("your rule denies it")
        assert str(tmp_path / "more") in used.agent.runtime.live.session.state.directories


# --- bad input ---


BAD = [
    ({"cwd": "nowhere"}, "nowhere"),
    ({"allow": ["bash(("]}, "allow"),
    ({"settings": {"compaction": {"enabeld": True}}}, "enabeld"),
    ({"settings": {"mode": "wild"}}, "mode"),
    ({"directories": ["missing"]}, "missing"),
    ({"tools": [lambda: "no text"]}, "lambda"),
    ({"tools": ["text"]}, "function"),
    ({"extensions": [42]}, "setup"),
]


@pytest.mark.parametrize(("options", "word"), BAD, ids=lambda one: str(one)[:30])
def test_what_does_not_fit_is_a_usage_error_before_anything_is_opened(tmp_path, options, word):
    with pytest.raises(tenuto.UsageError, match=word):
        tenuto.Agent(**{"home": tmp_path / "home", "cwd": tmp_path, **options})
    assert not (tmp_path / "home").exists()


async def test_a_model_without_a_key_an_unknown_one_and_a_session_that_is_not_there(tmp_path):
    options = {"cwd": tmp_path, "home": tmp_path / "home", "environ": {}}
    for more, error, word in (
        ({"model": "anthropic/claude-sonnet-5-5"}, tenuto.ModelError, "ANTHROPIC_API_KEY"),
        ({"model": "nobody/nothing"}, (tenuto.ModelError, tenuto.UsageError), "nobody"),
        ({"model": "offline/tenuto", "resume": "nothing-like-it"}, tenuto.UsageError, "nothing-like-it"),
        ({"model": "offline/tenuto", "resume": True}, tenuto.UsageError, "no earlier session"),
    ):
        agent = tenuto.Agent(**options, **more)
        with pytest.raises(error, match=word):
            await agent.open()
        with pytest.raises(tenuto.AgentClosedError):
            await agent.run("go")
    assert list_sessions(tmp_path / "home") == []


async def test_an_agent_that_is_not_open_says_so(tmp_path):
    async with ScriptedServer([Reply("One.")]) as server:
        agent = tenuto.Agent(**options_of(tmp_path, server))
        for act in (agent.run("go"), agent.compact(), agent.undo(), agent.interrupt(), anext(agent.stream("go"))):
            with pytest.raises(tenuto.AgentClosedError, match="not open"):
                await act
        async with agent:
            with pytest.raises(tenuto.AgentClosedError, match="open already"):
                await agent.open()
            await agent.run("go")
        await agent.close()
        for act in (agent.run("go"), agent.open()):
            with pytest.raises(tenuto.AgentClosedError, match=agent.session_id):
                await act
        assert agent.usage.output > 0
        assert len(server.requests) == 1


async def test_a_second_run_meanwhile_is_refused_and_nothing_is_sent(tmp_path):
    async with using(tmp_path, lambda _request: Reply("Slow.", delay=0.3)) as used:
        first = asyncio.create_task(used.agent.run("one"))
        await used.server.wait_for_requests(1)
        for act in (used.agent.run("two"), used.agent.compact(), used.agent.undo(), anext(used.agent.stream("three"))):
            with pytest.raises(tenuto.AgentBusyError, match="a prompt"):
                await act
        assert (await first).text == "Slow."
        assert (await used.agent.run("four")).text == "Slow."
        assert len(used.server.requests) == 2


async def test_an_empty_prompt_and_a_schema_that_is_none_send_nothing(tmp_path):
    async with using(tmp_path, []) as used:
        for prompt, schema in ((" ", None), ("go", {"type": "nonsense"}), ("go", object), ("go", 7)):
            with pytest.raises(tenuto.UsageError, match=r"empty|schema"):
                await used.agent.run(prompt, schema=schema)
        assert used.server.requests == []


def test_an_agent_of_a_loop_that_is_closed_says_so(tmp_path):
    options = {"cwd": tmp_path, "home": tmp_path / "home", "model": "offline/tenuto", "environ": {}}

    async def begin():
        return await tenuto.Agent(**options).open()

    async def go_on(agent):
        await agent.run("go")

    agent = asyncio.run(begin())
    with pytest.raises(tenuto.AgentClosedError, match="another event loop"):
        asyncio.run(go_on(agent))


async def test_a_listener_that_fails_stops_nothing_and_is_told_of(tmp_path):
    async with using(tmp_path, [Reply("Fine.")]) as used:

        def broken(_event) -> None:
            raise ZeroDivisionError("mine")

        used.agent.subscribe(broken)
        assert (await used.agent.run("go")).text == "Fine."
        assert any("ZeroDivisionError" in event.text for event in used.of(NoticeEvent))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nope"):
        _ = tenuto.Nope


# --- without async ---


def test_the_options_of_a_sync_agent_are_those_of_an_agent():
    own = list(inspect.signature(tenuto.Agent).parameters)[1:]
    assert list(AgentOptions.__annotations__) == own
    public = {name for name in dir(tenuto.Agent) if not name.startswith("_")} - {"of"}
    assert {name for name in dir(tenuto.SyncAgent) if not name.startswith("_")} == public
    for name in public - {"runtime"}:
        if inspect.isfunction(getattr(tenuto.Agent, name)):
            first, second = (inspect.signature(getattr(kind, name)) for kind in (tenuto.Agent, tenuto.SyncAgent))
            assert list(first.parameters.values()) == list(second.parameters.values()), name
    assert typing.get_type_hints(tenuto.Answer)["text"] is str
