"""No key of a text that is typed over a draft answers an approval (security.md S20, daily-user.md F5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import ImagePart
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.state.effects import Submit
from tenuto.tui.state.intents import DraftChanged, ImageAttached, Intent, Tick
from tests.tui.machine.driving import Driver, approval, started

PLAN = replace(approval(), kind="plan", detail="# Plan\n\n- one")
LASTING = approval()
TYPED = st.text("1234567890yanpfmjkYN ./?!é漢", min_size=1, max_size=12)
PAUSES = st.sampled_from([0.0, 0.05, 0.2, 0.4, 0.6, 1.1, 1.5, 3.0, 30.0])


class Prompt:
    """The keyboard over the machine, with an editor that inserts at its end; `Tick` comes as on a screen."""

    cursor, on_first_row, on_last_row = 0, True, True

    def __init__(self) -> None:
        self.driver = Driver()
        self.state = self.driver.state
        self.text = ""
        self.keyboard = Keyboard(self, lambda: self, {}, lambda: self.driver.now)  # type: ignore[arg-type,return-value]

    def handle(self, intent: Intent) -> None:
        self.driver.feed(intent)

    def insert_text(self, text: str) -> None:
        self.text += text
        self.handle(DraftChanged(self.text, len(self.text)))

    def press(self, key: str, character: str | None = None) -> None:
        kept = self.keyboard.press(key, character)
        if kept == "backspace":
            self.text = self.text[:-1]
            self.handle(DraftChanged(self.text, len(self.text)))
        elif kept is not None and character is not None:
            self.insert_text(character)

    def wait(self, seconds: float) -> None:
        for _ in range(10):
            self.driver.after(seconds / 10).feed(Tick())

    @property
    def answers(self) -> list[AnswerApprovalOperation]:
        sent = [effect.operation for effect in self.driver.effects if isinstance(effect, Submit)]
        return [operation for operation in sent if isinstance(operation, AnswerApprovalOperation)]


@given(
    st.text("123yanp x", min_size=1, max_size=4),
    st.lists(st.tuples(PAUSES, TYPED), min_size=1, max_size=6),
    st.sampled_from([LASTING, PLAN, approval(pattern="")]),
)
def test_s20_nothing_that_is_typed_over_a_draft_answers(
    draft: str, typed: list[tuple[float, str]], request: ApprovalRequestedEvent
) -> None:
    prompt = Prompt()
    for character in draft:
        prompt.press(character, character)
    prompt.driver.feed(started(), request)
    for pause, text in typed:
        prompt.wait(pause)
        for character in text:
            prompt.press(character, character)
            assert prompt.answers == []
    assert prompt.text == draft + "".join(text for _, text in typed), "and every key is in the draft"
    prompt.wait(5.0)
    prompt.press("enter")
    assert prompt.answers == [], "nor Enter, before an answer was chosen"
    prompt.press("down")
    prompt.press("enter")
    assert len(prompt.answers) == 1


@pytest.mark.parametrize("key", ["1", "2", "3", "y", "a", "p", "n"])
@pytest.mark.parametrize("draft", ["my draft", " ", "3", "@", "!ls"])
def test_f5_a_key_after_a_long_pause_goes_into_the_draft(draft: str, key: str) -> None:
    prompt = Prompt()
    prompt.insert_text(draft)
    prompt.driver.feed(started(), LASTING)
    prompt.wait(5.0)
    assert prompt.state.approvals.current is not None
    prompt.press(key, key)
    assert (prompt.text, prompt.answers) == (draft + key, [])


def test_f5_an_image_alone_is_a_draft_too() -> None:
    prompt = Prompt()
    prompt.handle(ImageAttached(ImagePart(sha256="0" * 64, media_type="image/png", size=1)))
    prompt.driver.feed(started(), LASTING)
    prompt.wait(5.0)
    prompt.press("3", "3")
    assert (prompt.text, prompt.answers) == ("3", [])


@pytest.mark.parametrize(("key", "decision"), [("1", "once"), ("2", "session"), ("3", "project"), ("n", "deny")])
def test_f5_over_an_empty_prompt_a_key_answers_after_the_grace(key: str, decision: str) -> None:
    prompt = Prompt()
    prompt.driver.feed(started(), LASTING)
    prompt.wait(0.4)
    prompt.driver.feed(Tick())
    prompt.press(key, key)
    assert prompt.answers == [], "it may have been under way"
    prompt = Prompt()
    prompt.driver.feed(started(), LASTING)
    prompt.wait(5.0)
    prompt.press(key, key)
    assert [answer.decision for answer in prompt.answers] == [decision]
