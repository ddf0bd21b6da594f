import msgspec
import pytest

from tenuto.compaction.meter import IMAGE_TOKENS, Meter, estimate_message, estimate_tools, should_compact_threshold
from tenuto.config.settings import CompactionSettings
from tenuto.protocol.entry import QueuedEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage, UserMessage
from tenuto.protocol.model import ToolSchema
from tenuto.protocol.part import ImagePart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tests.compaction.build import MODEL, History, budget, text, words

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
    thinking = AssistantMessage(parts=(ThinkingPart(text=words(500)),))
    call = AssistantMessage(parts=(ToolCallPart(id="1", name="write", arguments=f'{{"text": "{words(500)}"}}'),))
    assert estimate_message(thinking) >= 500
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
    meter = Meter()
    assert meter.calibration(history.path, MODEL) == 4.0
    history.add(CompactionEntry(summary="s", first_kept_index=2, replacement=(SystemMessage(text="s"),)))
    size = meter.measure_view(history.view(), history.path, model_id=MODEL)
    assert size.tokens == size.estimate * 4


def test_r027_the_meter_is_never_negative():
    history = conversation()
    history.answer("x", usage=Usage(input=10, output=0, unsent_reasoning=500))
    assert history.size().tokens == 0


def test_measuring_a_later_step_looks_only_at_what_is_new(monkeypatch):
    """The estimates of a long view are made once, not once a step."""
    import tenuto.compaction.meter as module

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
