from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from tenuto.command.outcome import Copy, EditFile, Page, PassedOn, SetMouse, Shown
from tenuto.protocol.event import (
    AnyEvent,
    ReplayFinishedEvent,
    TitleChangedEvent,
    UserMessageEvent,
)
from tenuto.protocol.part import TextPart
from tenuto.tui.keys.bindings import IntentBase
from tenuto.tui.machine.change import check_handlers, on
from tenuto.tui.state.effects import Title
from tenuto.tui.state.intents import Tick
from tests.tui.machine.driving import Driver, finished, opened, started, user


def test_every_event_and_intent_has_exactly_one_handler():
    kinds = {*get_args(AnyEvent), *IntentBase.__subclasses__(), *get_args(Shown | PassedOn)}
    check_handlers(kinds)
    with pytest.raises(TypeError, match="Driver"):
        check_handlers(kinds | {Driver})
    with pytest.raises(TypeError, match="Tick"):
        check_handlers(kinds - {Tick})
    with pytest.raises(TypeError, match="two handlers"):
        on(Tick)(lambda change, intent: None)


@pytest.mark.parametrize("asked", [Copy("text"), EditFile("/f"), Page("/f"), SetMouse("off")])
def test_what_a_command_asks_of_the_screen_is_an_effect_as_it_stands(asked):
    assert Driver().feed(asked) == [asked]


def test_events_of_another_session_do_not_show():
    driver = Driver()
    driver.feed(UserMessageEvent(session_id="child", seq=1, parts=(TextPart(text="x"),)))
    assert driver.items == []


def test_title_is_set_on_change_only_and_carries_no_control_characters():
    driver = Driver()
    event = TitleChangedEvent(session_id="s", title="fix\x1b]0;evil\x07 it")
    assert driver.feed(event)[-1:] == [Title("fix]0;evil it — project")]
    assert Title("✳ fix]0;evil it — project") in driver.feed(started())
    assert not [effect for effect in driver.feed(event) if isinstance(effect, Title)]
    assert Title("fix]0;evil it — project") in driver.feed(finished())


def test_without_a_title_the_terminal_says_how_it_began():
    driver = Driver()
    driver.feed(started())
    began = user(3, "fix the parser of\nnested quotes, and then look at the lexer")
    assert Title("✳ fix the parser of nested quotes, and… — project") in driver.feed(began)
    assert not [effect for effect in driver.feed(user(5, "go on")) if isinstance(effect, Title)]
    assert Title("✳ lexer — project") in driver.feed(TitleChangedEvent(session_id="s", title="lexer"))
    resumed = msgspec.structs.replace(opened(resumed=True), began="x" * 50)
    driver.feed(finished(), resumed, user(9, "a later one"), ReplayFinishedEvent(session_id="s"))
    assert driver.state.terminal_title == f"{'x' * 40}… — project"


def test_a_state_at_rest_needs_no_ticks():
    driver = Driver()
    assert not driver.state.animating
    driver.feed(started())
    assert driver.state.animating
    driver.feed(finished())
    assert not driver.state.animating
    assert driver.feed(Tick()) == []
