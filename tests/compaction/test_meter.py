from pathlib import Path

import msgspec
import pytest

from tenuto.compaction.measure.meter import Meter, should_compact_threshold
from tenuto.compaction.measure.weight import IMAGE_TOKENS, estimate_message, estimate_tools
from tenuto.compaction.ways.rungs import hide_results
from tenuto.compaction.ways.validate import CurrentContext, evaluate, view_after
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.entry import QueuedEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage, UserMessage
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session
from tests.compaction.build import MODEL, History, budget, text, words
from tests.growth.counting import calls_of

USAGE = Usage(input=9_000, cache_read=500, cache_write=500, output=100)


def conversation() -> History:
    history = History()
    history.user("look around")
    history.step(words(1_000))
    return history


def test_r024_last_usage_plus_the_estimate_of_what_came_after():
    history = conversation()
    history.answer("here", usage=USAGE)
    before = history.size()
    assert (before.tokens, before.estimated, before.uncounted) == (USAGE.context_size, False, 0)
    history.user(words(300))
    after = history.size()
    assert after.tokens == USAGE.context_size + estimate_message(history.path[-1])
    assert after.uncounted == estimate_message(history.path[-1])
    assert conversation().size().uncounted == conversation().size().tokens, "nobody counted anything yet"


def test_r024_reasoning_that_is_not_sent_back_does_not_count():
    history = conversation()
    history.answer("here", usage=Usage(input=1_000, output=900, reasoning=800, unsent_reasoning=800))
    assert history.size().tokens == 1_100


@pytest.mark.parametrize(
    "entry",
    [
        CompactionEntry(summary="s", first_kept_index=2, replacement=(SystemMessage(text="s"),)),
        ViewEditEntry(edits=(ViewEdit(target=4, kind="hidden", text="hidden"),)),
        UndoEntry(target=1),
        SystemMessage(text="new system prompt"),
    ],
)
def test_a_usage_from_before_the_view_changed_is_never_believed(entry):
    history = conversation()
    history.answer("here", usage=Usage(input=90_000, output=10))
    history.add(entry)
    history.user("go on")
    size = history.size()
    assert size.estimated
    assert size.tokens < 10_000


def test_usage_of_another_model_and_of_an_interrupted_answer_is_not_believed():
    history = conversation()
    history.add(AssistantMessage(parts=text("x"), model="test/other", usage=Usage(input=70_000, output=1)))
    history.answer("half", usage=Usage(input=80_000, output=1), stop_reason="interrupted")
    history.answer("nothing reported", usage=Usage())
    assert history.size().estimated
    assert history.size().tokens < 10_000


def test_r025_tools_images_calls_thinking_and_the_queue_are_counted():
    schema = ToolSchema(name="read", description="reads a file", parameters=msgspec.Raw(b'{"type":"object"}' * 100))
    tools = estimate_tools((schema,))
    assert tools > 400
    history = conversation()
    plain = history.size()
    assert history.size(tools_tokens=tools).tokens == plain.tokens + tools
    image = UserMessage(parts=(ImagePart(sha256="0", media_type="image/png"),))
    assert estimate_message(image) >= IMAGE_TOKENS
    call = AssistantMessage(parts=(ToolCallPart(id="1", name="write", arguments=f'{{"text": "{words(500)}"}}'),))
    assert estimate_message(call) >= 500
    queued = history.size(queue=(QueuedEntry(parts=text(words(700))),))
    assert queued.queued >= 700
    assert queued.tokens == plain.tokens + queued.queued
    assert queued.estimate == plain.estimate


def test_calibration_is_the_median_of_the_last_five_within_bounds():
    history = conversation()
    for real in (10_000, 2_000, 1_300, 1_300, 1_300, 1_200):
        history.answer("x", usage=Usage(input=real, output=1), estimate=1_000)
    assert Meter().calibration(history.path, MODEL) == pytest.approx(1.3)
    assert Meter().calibration(history.path, "test/other") == 1.0
    for _ in range(5):
        history.answer("x", usage=Usage(input=90_000, output=1), estimate=1_000)
    assert Meter().calibration(history.path, MODEL) == 4.0


def counted(history: History, value: str, real: int, answer: int = 5) -> None:
    """Add a prompt that was counted as `real` tokens, and its answer."""
    path = history.path
    before = next((e.usage.context_size for e in reversed(path) if isinstance(e, AssistantMessage) and e.usage), 10)
    message = history.user(value)
    history.answer("ok", usage=Usage(input=before + real, output=answer), estimate=history.size().estimate)
    assert message.seq


def test_t9_what_a_kind_of_content_costs_is_not_applied_to_another():
    """truth.md T9, seeds-001-002-004.md F7: digits that cost twice their estimate say nothing about prose."""
    history = History()
    digits = " ".join(map(str, range(100_000, 100_900)))
    for _ in range(4):
        counted(history, words(400), estimate_message(UserMessage(parts=text(words(400)))))
        counted(history, digits, 2 * estimate_message(UserMessage(parts=text(digits))))
    meter = Meter()
    size = meter.measure_view(history.view(), history.path, model_id=MODEL)
    assert size.calibration > 1.25, "one factor for everything would be far off"
    prose, more = UserMessage(parts=text(words(600))), UserMessage(parts=text(digits[: len(digits) // 2]))
    assert meter.tokens_of([prose], MODEL) == pytest.approx(estimate_message(prose), rel=0.05)
    assert meter.tokens_of([more], MODEL) == pytest.approx(2 * estimate_message(more), rel=0.05)


def test_t9_what_was_counted_keeps_its_size_behind_a_change_of_the_view():
    """truth.md T9: what stays in the view was counted before; the estimate is of no importance for it."""
    history = History()
    for real in (300, 2_900, 700):
        counted(history, words(1_000), real)
    meter = Meter()
    meter.measure_view(history.view(), history.path, model_id=MODEL)
    messages = [entry for entry in history.path if isinstance(entry, UserMessage)]
    assert [meter.tokens_of([message], MODEL) for message in messages[1:]] == [2_900, 700]
    history.add(CompactionEntry(summary="s", first_kept_index=5, replacement=(SystemMessage(text="s"),)))
    size = meter.measure_view(history.view(), history.path, model_id=MODEL)
    assert size.estimated
    assert 700 < size.tokens < 800


@pytest.mark.parametrize("rung", ["hide", "summary"])
def test_t9_what_is_told_afterwards_is_made_from_the_new_view_and_not_from_what_went(rung):
    """truth.md T9: the error of the large part that went landed on the small one that stayed: 3,837 for 3,425."""
    history = History()
    digits = " ".join(map(str, range(100_000, 100_900)))
    sent = estimate_message(history.path[0])
    for number in range(12):
        factor = 2 if number < 6 else 1  # first logs, which cost twice their estimate, then prose
        sent += estimate_message(history.user(words(60)))
        asked = history.size().estimate
        answer, result = history.step(digits if factor == 2 else words(60))
        usage = Usage(input=sent, output=estimate_message(answer))
        history.path[-2] = msgspec.structs.replace(answer, usage=usage, estimate=asked)
        sent += usage.output + factor * estimate_message(result)
    meter = Meter()
    view = history.view()
    size = meter.measure_view(view, history.path, model_id=MODEL)
    current = CurrentContext(path=history.path, view=view, size=size, budget=budget(), meter=meter, model_id=MODEL)
    outcome = (
        CompactionOutcome(edits=hide_results(view))
        if rung == "hide"
        else CompactionOutcome(replacement=(SystemMessage(text=words(300)),), first_kept_index=history.path[20].seq)
    )
    after = sum(
        estimate_message(message) * (2 if digits in str(message) else 1) for message in view_after(outcome, current)
    )
    assert abs(evaluate(outcome, current).tokens_after / after - 1) < 0.08


def test_f7_the_fixed_parts_have_the_size_that_the_first_request_measured():
    """seeds-001-002-004.md F7: the first request measured them, whatever comes later."""
    history = History(system=words(2_000))
    history.user("hi")
    history.answer("ok", usage=Usage(input=3_500, output=5), estimate=2_020)
    meter = Meter()
    meter.measure_view(history.view(), history.path, model_id=MODEL, tools_tokens=1_000)
    digits = " ".join(map(str, range(100_000, 100_900)))
    for _ in range(5):
        counted(history, digits, 2 * estimate_message(UserMessage(parts=text(digits))))
    size = meter.measure_view(history.view(), history.path, model_id=MODEL, tools_tokens=1_000)
    assert size.fixed == pytest.approx(3_500, rel=0.03)


@pytest.mark.parametrize("tool_call", [True, False])
def test_defect_3_thinking_counts_where_it_is_sent_and_nowhere_else(tool_call):
    """seeds-000-003.md 3: thinking without a block is never sent, none is sent behind a change of the view."""
    plain, thought = History(), History()
    for history, thinking in ((plain, ""), (thought, words(5_000))):
        history.user("think")
        part = (ThinkingPart(text=thinking, provider="test", block=msgspec.Raw(b"{}")),) if thinking else ()
        history.add(AssistantMessage(parts=(*part, *text("so")), model=MODEL, prefix="00.0"))
        history.user("on")
    assert thought.size().estimate >= plain.size().estimate + 5_000
    for history in (plain, thought):
        history.add(CompactionEntry(summary="s", first_kept_index=2, replacement=(SystemMessage(text="s"),)))
    assert thought.size().tokens == plain.size().tokens
    loose = History()
    loose.user("think")
    loose.step("ok", thinking=words(5_000)) if tool_call else loose.answer("so")
    assert loose.size().tokens < 200


def test_an_undo_gives_back_what_was_counted_before_the_compaction():
    history = conversation()
    history.answer("here", usage=USAGE)
    history.user("go on")
    before = history.size()
    compaction = history.add(
        CompactionEntry(summary="s", first_kept_index=5, replacement=(SystemMessage(text="s"),)),
    )
    history.answer("made of the summary", usage=Usage(input=90_000, output=1))
    answered = history.path[-1]
    history.add(UndoEntry(target=compaction.seq))
    after = history.size()
    assert not after.estimated
    assert after.tokens == before.tokens + estimate_message(answered)
    history.add(UndoEntry(target=history.path[-1].seq))
    assert history.size().tokens == Usage(input=90_000, output=1).context_size, "and a redo what it was then"


def test_foreign_4_usage_that_another_agent_reported_is_not_ours():
    """foreign.md 4: its system prompt and tools are in the number."""
    history = conversation()
    history.answer("imported", usage=Usage(input=130_833, output=3), prefix="", estimate=0)
    size = history.size()
    assert size.estimated
    assert size.tokens < 2_000
    assert Meter().calibration(history.path, MODEL) == 1.0


def test_r027_the_meter_is_never_negative():
    history = conversation()
    history.answer("x", usage=Usage(input=10, output=0, unsent_reasoning=500))
    assert history.size().tokens == 0


def test_measuring_a_later_step_looks_only_at_what_is_new(monkeypatch):
    """The estimates of a long view are made once, not once a step."""
    import tenuto.compaction.measure.meter as module

    counted: list[object] = []
    real = module.estimate_message
    monkeypatch.setattr(module, "estimate_message", lambda message: counted.append(message) or real(message))
    history, meter = conversation(), Meter()
    for _ in range(300):
        history.step("ok")
    meter.measure_view(history.view(), history.path, model_id=MODEL)
    counted.clear()
    history.step("ok")
    meter.measure_view(history.view(), history.path, model_id=MODEL)
    assert len(counted) == 2


def test_r015_switched_off_means_no_threshold():
    history = conversation()
    history.answer("x", usage=Usage(input=31_000, output=1))
    size = history.size()
    assert should_compact_threshold(size, budget(), CompactionSettings())
    assert not should_compact_threshold(size, budget(), CompactionSettings(enabled=False))
    assert not should_compact_threshold(size, budget(1_000_000), CompactionSettings())


def test_the_size_is_known_while_nothing_was_appended(tmp_path: Path):
    """Footer, trigger, budget and request ask for it, several times a step."""
    session, meter = Session.create(tmp_path / "home", tmp_path), Meter()
    session.append(UserMessage(parts=(TextPart(text="one"),)))
    with calls_of(meter, "measure_view") as measured:
        first = meter.measure(session, "some/model")
        assert meter.measure(session, "some/model") == first
        assert measured.number == 1
        assert meter.measure(session, "other/model").tokens == first.tokens
        session.append(QueuedEntry(parts=(TextPart(text="queued"),)))
        assert meter.measure(session, "other/model").queued > 0
        assert measured.number == 3
    session.close()
