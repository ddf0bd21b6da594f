"""What is believed of a window: refusals, served requests, settings, age (seeds-001-002-004.md F2 and F9)."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.compaction_commands import report_context
from tenuto.command.outcome import Say
from tenuto.compaction.measure.budget import LEAST_FREE, MIN_FREE, MIN_OUTPUT, aim_for, allowance_for, budget_for
from tenuto.config.settings import CompactionSettings
from tenuto.core.compacting.environment import LearningClient
from tenuto.core.state.windows import note_served
from tenuto.protocol.event import CompactionEndEvent, NoticeEvent, PromptReturnedEvent
from tenuto.protocol.message import AssistantMessage, SystemMessage
from tenuto.protocol.model import ModelError, ModelFacts, ModelRequest
from tenuto.protocol.usage import Usage
from tests.core.compacting import SUMMARY, compactions, is_summary_request, reads, talk, user, words, write_big_file
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.core.remote_compacting import choose
from tests.examples import one_of
from tests.server import HttpError, Reply, Request, ScriptedServer
from tests.server.reply import AnyReply

BOGUS = {
    "anthropic": "prompt is too long: {sent} tokens > {limit} maximum",
    "openai": "This model's maximum context length is {limit} tokens. However, your messages resulted in {sent} "
    "tokens.",
    "openai-chat": "This model's maximum context length is {limit} tokens. However, your messages resulted in {sent} "
    "tokens. Please reduce the length of the messages.",
}


def refusal(protocol: str, sent: int, limit: int) -> HttpError:
    return HttpError(400, BOGUS[protocol].format(sent=sent, limit=limit))


def learned(tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "home" / "models.json"
    return json.loads(file.read_text())["windows"] if file.exists() else {}


def teach(tmp_path: Path, server: ScriptedServer, tokens: int, ago: float = 0.0) -> None:
    """Write what an earlier session learned of the test model."""
    import time

    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    base_url = server.environ()["OPENAI_BASE_URL"]
    kept = {"tokens": tokens, "learned": time.time() - ago}
    (home / "models.json").write_text(json.dumps({"windows": {f"openai-chat/test {base_url}": kept}}))


def notices(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_f2_a_limit_under_what_was_served_is_not_believed(tmp_path: Path, protocol: str):
    """One backend of a gateway names a limit that the same model has exceeded before."""
    count = 0

    def script(request: Request) -> AnyReply:
        nonlocal count
        if is_summary_request(request):
            return Reply(SUMMARY)
        count += 1
        return refusal(protocol, request.tokens, 1_500) if count == 5 else Reply("fine " * 50)

    async with ScriptedServer(script, listed_window=200_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            for number in range(5):
                settled = await running.ask(f"{number} " + words(700))
                assert settled.outcome == "completed", settled.error
            assert (running.runtime.live.facts.context_window or 0) > 1_500
        assert learned(tmp_path) == {}
        async with reopened(tmp_path, server, model=f"{protocol}/test") as later:
            assert (await later.ask("hi")).outcome == "completed"


async def test_f2_a_limit_under_the_fixed_parts_is_not_believed(tmp_path: Path):
    """The very first request is refused with a number that no request of this program can be under."""
    answers: list[AnyReply] = [refusal("openai-chat", 2_000, 300)]

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return answers.pop() if answers else Reply("fine")

    async with ScriptedServer(script, listed_window=200_000) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("hi")
            assert running.runtime.live.facts.context_window == 200_000
        assert learned(tmp_path) == {}
        async with reopened(tmp_path, server) as later:
            assert (await later.ask("hi")).outcome == "completed"


@pytest.mark.parametrize("protocol", one_of(["anthropic", "openai-chat"]))
async def test_f9_a_lower_number_than_the_setting_holds_for_the_session(tmp_path: Path, protocol: str):
    """seeds-000-003.md 4 as well: the setting said 32,768, the server takes 12,000."""
    write_big_file(tmp_path)
    model = f"{protocol}/test"
    choose(tmp_path, model, context_window=32_768)
    async with ScriptedServer(reads(30), window=12_000) as server:
        async with reopened(tmp_path, server, model=model) as running:
            settled = await running.ask("read it all", timeout=60)
            assert settled.outcome == "completed", settled.error
            assert len(server.refusals) == 1
            assert running.runtime.live.facts.context_window == 12_000
            (told,) = [text for text in notices(running) if "12,000" in text]
            assert "context_window" in told and model in told and "remembered" not in told
        assert learned(tmp_path) == {}, "the setting holds again in the next session"
        async with reopened(tmp_path, server, model=model) as later:
            assert later.runtime.live.facts.context_window == 32_768


async def test_f2_a_prompt_over_a_learned_window_is_sent_to_see(tmp_path: Path):
    async with ScriptedServer([Reply("fine")], listed_window=200_000) as server:
        teach(tmp_path, server, 6_000)
        async with reopened(tmp_path, server) as running:
            assert running.runtime.live.facts.source == "learned"
            settled = await running.ask(words(7_000))
            assert settled.outcome == "completed", settled.error
            assert any("to see" in text for text in notices(running))
            assert running.runtime.live.facts.context_window == 200_000
        assert learned(tmp_path) == {}


async def test_f2_a_confirmed_window_is_named_with_where_it_stands(tmp_path: Path):
    """Refused again, the number holds; what is said then tells where it stands and how it is dropped."""

    def script(request: Request) -> AnyReply:
        if request.tokens > 6_000:
            return refusal("openai-chat", request.tokens, 6_000)
        return Reply(SUMMARY if is_summary_request(request) else "fine")

    async with ScriptedServer(script, listed_window=200_000) as server:
        teach(tmp_path, server, 6_000)
        async with reopened(tmp_path, server) as running:
            await running.ask(words(7_000))
            asked = len(server.requests)
            await running.ask(words(7_000))
            assert len(server.requests) == asked, "what was confirmed in this session is not sent again"
            reason = running.of(PromptReturnedEvent)[-1].reason
            assert "models.json" in reason and "/model forget" in reason
            (said,) = await running.runtime.run_command("/model forget")
            assert isinstance(said, Say)
            assert "6,000" in said.text and "200,000" in said.text
            assert running.runtime.live.facts.context_window == 200_000
        assert learned(tmp_path) == {}


async def test_f2_what_was_learned_ages(tmp_path: Path):
    async with ScriptedServer([Reply("fine")], listed_window=200_000) as server:
        teach(tmp_path, server, 6_000, ago=8 * 24 * 3600.0)
        async with reopened(tmp_path, server) as running:
            assert running.runtime.live.facts.context_window == 200_000


async def test_f2_a_served_request_over_the_learned_window_ends_it(tmp_path: Path):
    from tests.server import Tokens

    reply = Reply("fine", usage=Tokens(input=9_000, output=5))
    async with ScriptedServer([reply], listed_window=200_000) as server:
        teach(tmp_path, server, 6_000)
        async with reopened(tmp_path, server) as running:
            await running.ask("hi")
            assert running.runtime.live.facts.context_window == 200_000
        assert learned(tmp_path) == {}


@pytest.mark.parametrize("named", [True, False])
async def test_polish_b_what_the_summariser_learns_holds_for_the_session(tmp_path: Path, named: bool):
    """seeds-001-002-004.md, polish b: what a summary's refusal says of a window holds for the session too."""

    def script(request: Request) -> AnyReply:
        if request.tokens <= 14_000:
            return Reply(SUMMARY if is_summary_request(request) else "fine")
        words_alone = HttpError(400, "Your input exceeds the context window of this model.")
        return refusal("openai-chat", request.tokens, 14_000) if named else words_alone

    async with agent(tmp_path, script, options={"listed_window": 60_000}) as running:
        await running.ask("hi")
        live = running.runtime.live
        client = LearningClient(live, live.models.client("openai-chat"))
        request = ModelRequest(model=live.facts, messages=(SystemMessage(text="Summarise."), user(words(17_000))))
        with pytest.raises(ModelError) as caught:
            async for _ in client.stream(request):
                pass
        assert caught.value.kind == "overflow", caught.value
        window = live.facts.context_window or 0
        assert window == 14_000 if named else 14_000 < window < 60_000
        assert live.models.facts(live.facts.id).context_window == window


CROWDED = [
    (5_600, 150, 300),
    (5_600, 150, 1_200),
    (8_192, 100, 2_800),
    (15_000, 1_000, 2_200),
    (15_000, 1_600, 700),
    (18_000, 1_885, 1_200),
    (24_000, 900, 8_400),
    (24_000, 1_700, 3_600),
    (24_000, 2_700, 1_200),
]
"""A window in tokens, how often the rule stands in the system prompt, and the tokens of each prompt."""


@pytest.mark.parametrize(("window", "rules", "size"), CROWDED)
async def test_item_10_what_fits_the_window_is_sent_whatever_fixed_parts_and_prompts_take(
    tmp_path, window, rules, size
):
    """Fixed parts over the trigger, or a long prompt beside them, left nothing to compact, and the task was lost."""
    async with agent(
        tmp_path,
        talk(Reply("fine " * 200)),
        extra_prompt="Follow this rule always. " * rules,
        options={"window": window, "listed_window": window},
    ) as running:
        live = running.runtime.live
        for turn in range(8):
            settled = await running.ask(f"{turn} {words(size)}")
            assert settled.outcome == "completed", settled.error
            assert live.measure().tokens < window
        assert compactions(running), "the window was full more than once"
        failed = [event.error for event in running.of(CompactionEndEvent) if event.error and not event.needless]
        assert not failed


@given(st.integers(4_000, 400_000), st.floats(0, 1), st.floats(0.5, 2))
def test_item_10_the_limit_leaves_room_wherever_the_window_does(window, share, calibration):
    budget = budget_for(ModelFacts(provider="p", name="m", context_window=window), CompactionSettings())
    asked = int(share * window)
    aim = aim_for(budget, asked)
    assert budget.trigger <= aim.trigger < window
    assert aim.target <= max(aim.trigger, asked)
    if window - asked >= MIN_OUTPUT + window // 10 + 2 * LEAST_FREE:
        assert aim.trigger - asked >= LEAST_FREE
        assert allowance_for(aim, fixed=asked, calibration=calibration).free * calibration >= LEAST_FREE / 2
    if budget.trigger - asked >= 2 * MIN_FREE:
        assert aim.trigger == budget.trigger, "the limit is only raised where it has to be"


async def test_f9_a_served_request_proves_an_unknown_window_larger(tmp_path):
    """daily-user.md F9: 128,000 were assumed with 563,000 served, and the promised compaction did not come."""

    async with agent(tmp_path, talk()) as running:
        live = running.runtime.live
        live.model.facts = msgspec.structs.replace(live.facts, context_window=None)
        await running.ask("one")
        assert (live.budget().window, live.budget().known) == (128_000, False)
        usage = Usage(input=563_000, output=5)
        note_served(live, AssistantMessage(parts=(), model=live.facts.id, stop_reason="end_turn", usage=usage))
        assert live.budget().window == 1_048_576
        facts = dict(report_context(live).facts)
        assert "assumed" in facts["window"]
        assert "it has served 563,000" in facts["window"]
        assert live.budget().trigger > 563_000, "the trigger follows"


async def test_r001_a_request_that_leaves_no_room_is_compacted_though_one_failed_before(tmp_path):
    """After a failure the next waits for a tenth more; the window may be full before that."""
    async with agent(tmp_path, talk(), options={"window": 10_000, "listed_window": 10_000}) as running:
        live = running.runtime.live
        await running.ask("one")
        due = []
        for _ in range(40):
            live.compaction.automatic.note_failed(live.budget().window)
            due.append((live.budget().has_no_room(live.measure().tokens), live.is_compaction_due()))
            live.session.append(user("because " * 150))
        assert all(full == is_due for full, is_due in due)
        assert {full for full, _ in due} == {False, True}


async def test_f9_the_panel_tells_when_no_automatic_compaction_comes(tmp_path):
    """daily-user.md F9: the panel said "on" where they had been stopped or waited."""
    async with agent(tmp_path, talk()) as running:
        live = running.runtime.live
        assert dict(report_context(live).facts)["automatic"] == "on"
        live.compaction.automatic.note_failed(live.budget().window)
        assert "over" in dict(report_context(live).facts)["automatic"]
        live.compaction.automatic.ineffective = 2
        assert dict(report_context(live).facts)["automatic"].startswith("stopped")
        assert "about" in dict(report_context(live).facts)["kept word for word"]
