from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.view import SessionData, build_replacement, clip_to_tokens
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import SystemMessage, UserMessage
from tenuto.protocol.part import ImagePart
from tenuto.text.estimate import estimate_text
from tests.compaction.build import History, text, words


def many_turns(turns: int = 14) -> History:
    history = History()
    for turn in range(turns):
        history.user(f"request number {turn}")
        history.step(words(1_300))
        history.answer("ok")
    return history


def system_text(history: History, session_data: SessionData | None = None, **more: object) -> str:
    plan = history.planned(**more)
    [system, *_rest] = build_replacement(plan, "THE SUMMARY", session_data or SessionData(), Prompts())
    assert isinstance(system, SystemMessage)
    return system.text


def test_frame_summary_pins_todo_jobs_and_user_texts_stand_in_this_order():
    session_data = SessionData(
        pins=("Never touch legacy/.",),
        todo=(TodoItem(text="parse", status="done"), TodoItem(text="old plan", status="cancelled")),
        jobs=("job 1: npm run dev",),
    )
    shown = system_text(many_turns(), session_data)
    marks = ["record, not a request", "<summary>\nTHE SUMMARY\n</summary>", "<pins>", "Never touch legacy/."]
    marks += ["<todo>", "- [x] parse", "- [-] cancelled: old plan", "<running-jobs>", "<user-messages>"]
    places = [shown.index(mark) for mark in marks]
    assert places == sorted(places)


def test_r038_the_frame_says_to_go_on_and_not_to_start_over():
    shown = system_text(many_turns())
    assert "Go on with the present task" in shown
    assert "do not start over" in shown


def test_the_frame_names_the_last_summarised_entry_and_recall_only_where_it_exists():
    history = many_turns()
    cut = history.planned().cut
    assert f"up to entry {cut - 1};" in system_text(history)
    assert "recall" not in system_text(history)
    assert "`recall`" in system_text(history, SessionData(recall=True))


def test_r033_user_texts_are_kept_word_for_word_in_time_order_and_marked_as_dealt_with():
    history = many_turns()
    plan = history.planned()
    shown = system_text(history)
    before = plan.turn_start or plan.cut
    said = [entry for entry in history.path if isinstance(entry, UserMessage) and entry.seq < before]
    assert len(said) > 5
    places = [shown.index(f": request number {turn}\n") for turn in range(len(said))]
    assert places == sorted(places)
    assert "dealt with" in shown


def test_nothing_of_the_tail_or_the_split_turn_is_repeated():
    history = many_turns()
    history.user("THE SPLIT REQUEST")
    for _ in range(12):
        history.step(words(1_300))
    plan = history.planned()
    replacement = build_replacement(plan, "s", SessionData(), Prompts())
    assert str(replacement).count("THE SPLIT REQUEST") == 1
    assert isinstance(replacement[-1], UserMessage)


def test_texts_that_no_user_wrote_are_not_among_the_users():
    history = many_turns(3)
    history.user("MADE BY A HOOK", origin="hook")
    for _ in range(3):
        history.user("next")
        history.step(words(3_000))
    assert "MADE BY A HOOK" not in system_text(history)


def test_a_text_that_does_not_fit_is_cut_in_its_middle_with_a_mark():
    clipped = clip_to_tokens("START " + words(2_000) + " END", 300)
    assert clipped.startswith("START")
    assert clipped.endswith("END")
    assert "characters left out" in clipped
    assert estimate_text(clipped) <= 300


@given(st.text(max_size=3_000), st.integers(0, 500))
def test_clipping_keeps_its_promise(value, limit):
    clipped = clip_to_tokens(value, limit)
    assert estimate_text(clipped) <= max(limit, 80)
    if estimate_text(value) <= limit:
        assert clipped == value


@given(st.lists(st.integers(1, 4_000), min_size=3, max_size=25), st.integers(8_000, 60_000))
def test_user_texts_take_their_share_and_what_nothing_else_needs(sizes, window):
    history = History()
    for size in sizes:
        history.user(words(size))
        history.step(words(600))
        history.answer("ok")
    plan = history.plan(window, keep_tokens=700)
    if hasattr(plan, "cut"):
        [system, *anchor] = build_replacement(plan, "s", SessionData(), Prompts())
        start = system.text.find("<user-messages>")
        if start >= 0:
            taken = plan.kept_tokens + estimate_text(system.text[:start]) + sum(map(estimate_message, anchor))
            most = max(plan.allowance.user_messages, plan.allowance.free - taken)
            assert estimate_text(system.text[start:]) <= most + 60


def test_r034_a_split_turns_request_stays_whole_with_its_images():
    history = many_turns(3)
    image = ImagePart(sha256="0" * 64, media_type="image/png")
    history.add(UserMessage(parts=(*text("like this picture"), image)))
    for _ in range(12):
        history.step(words(1_300))
    replacement = build_replacement(history.planned(), "s", SessionData(), Prompts())
    assert replacement[-1].parts[-1] == image


def test_a_request_that_alone_fills_the_window_is_cut_in_its_middle():
    history = many_turns(2)
    history.user("START " + words(15_000) + " END")
    for _ in range(5):
        history.step(words(1_000))
    plan = history.planned(keep_tokens=1_500)
    replacement = build_replacement(plan, "s", SessionData(), Prompts())
    assert sum(map(estimate_message, replacement)) + plan.kept_tokens <= plan.allowance.free
    assert replacement[-1].parts[0].text.endswith("END")
