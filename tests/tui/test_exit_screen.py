"""What stays on the normal screen when the full screen goes."""

from __future__ import annotations

from tenuto.tui.chrome.exit_screen import parting_lines
from tenuto.tui.machine.item import AssistantItem, Item, UserItem
from tenuto.tui.render.options import RenderOptions

OPTIONS = RenderOptions()


def items(count: int) -> list[Item]:
    made: list[Item] = []
    for number in range(count):
        made.append(UserItem(id=2 * number + 1, text=f"question {number}", seq=2 * number + 1, final=True))
        made.append(AssistantItem(id=2 * number + 2, text=f"answer {number}\n\nand more", final=True))
    return made


def texts(what: str, rows: int, count: int = 20) -> list[str]:
    return [line.text.strip() for line in parting_lines(items(count), what, 80, rows, OPTIONS)]  # type: ignore[arg-type]


def test_the_last_screenful_fits_with_the_hint_and_the_prompt_below():
    shown = texts("screen", 24)
    assert shown[-1] == "and more"
    assert "answer 19" in shown
    assert 15 < len(shown) <= 20
    assert shown[0]


def test_a_short_conversation_is_there_from_its_beginning():
    assert texts("screen", 24, 1)[0].endswith("question 0")


def test_only_the_answer_or_nothing():
    assert texts("answer", 5) == ["answer 19", "", "and more"]
    assert texts("off", 24) == []
    assert texts("screen", 24, 0) == texts("answer", 24, 0) == []


def test_the_cost_does_not_grow_with_the_conversation():
    many = items(20_000)
    many[0] = None  # type: ignore[call-overload]
    assert parting_lines(many, "screen", 80, 24, OPTIONS), "the beginning is not looked at"
