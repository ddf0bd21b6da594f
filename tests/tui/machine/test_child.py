"""Sub-agents in the transcript: reading along with one, ending one or all, by keys alone."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    ChildEndedEvent,
    ChildProgressEvent,
    ChildTranscriptEvent,
    TaskStartedEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AgentView, AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import InterruptOperation, MoveToBackgroundOperation, WatchChildOperation
from tenuto.protocol.part import TextPart
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.panels.children import child_panel
from tenuto.tui.panels.reading import block_panel
from tenuto.tui.render.options import DEFAULT
from tenuto.tui.state.effects import PanelChanged, RunCommand, Submit
from tenuto.tui.state.intents import ActOnBlock, ActOnChild, Cancel, Escape, LeaveChild, MoveBlock, MoveToBackground
from tenuto.tui.state.item import ToolItem
from tests.tui.machine.driving import SESSION, Driver

CHILD = "child-1"


def text(words: str) -> tuple[TextPart, ...]:
    return (TextPart(text=words),)


def working(*, in_command: bool = False) -> Driver:
    """A turn in which two sub-agents run."""
    driver = Driver()
    driver.feed(TaskStartedEvent(session_id=SESSION, submission_id="t", kind="agent"))
    for number in (1, 2):
        call = f"call-{number}"
        arguments = '{"agent": "explore", "prompt": "look"}'
        driver.feed(
            ToolStartedEvent(session_id=SESSION, call_id=call, name="agent", arguments=arguments),
            ChildProgressEvent(
                session_id=SESSION, call_id=call, child=f"child-{number}", agent="explore", in_command=in_command
            ),
        )
    return driver


def block(driver: Driver, number: int = 1) -> ToolItem:
    return next(item for item in driver.items if isinstance(item, ToolItem) and item.call_id == f"call-{number}")


def on_block(driver: Driver, number: int = 1) -> Driver:
    driver.feed(MoveBlock(-1, at=block(driver, number).id))
    return driver


def reading(driver: Driver, *events: AnyEvent, working: bool = True) -> Driver:
    on_block(driver).feed(ActOnBlock("enter"))
    driver.feed(ChildTranscriptEvent(session_id=SESSION, child=CHILD, working=working, events=events))
    return driver


def shown(driver: Driver, rows: int = 20, scroll: int = 0) -> str:
    panel = child_panel(driver.state, 80, rows, scroll, DEFAULT)
    assert len(panel.lines) <= rows
    return "\n".join(line.text for line in panel.lines)


def operations(driver: Driver, kind: type) -> list:
    return [one.operation for one in driver.effects if isinstance(one, Submit) and isinstance(one.operation, kind)]


def ended(driver: Driver, number: int = 1) -> None:
    view = AgentView(session=f"child-{number}", agent="explore", outcome="completed", steps=1)
    result = ToolResultMessage(call_id=f"call-{number}", name="agent", parts=text("Found."), ui=(view,))
    driver.feed(
        ChildEndedEvent(
            session_id=SESSION, call_id=f"call-{number}", child=f"child-{number}", agent="explore", outcome="completed"
        ),
        ToolResultEvent(session_id=SESSION, message=result),
    )


def test_j5_enter_on_its_block_opens_the_transcript_and_esc_goes_back_to_the_block():
    driver = reading(working(), UserMessageEvent(session_id=CHILD, seq=1, parts=text("Look into it")))
    (watched,) = operations(driver, WatchChildOperation)
    assert (watched.session_id, watched.child, watched.watching) == (SESSION, CHILD, True)
    assert driver.state.contexts[0] == "child"
    assert "Look into it" in shown(driver)
    driver.feed(Escape())
    assert driver.state.contexts[0] == "block"
    assert operations(driver, WatchChildOperation)[-1].watching is False
    assert not operations(driver, InterruptOperation)


def test_j5_what_it_says_and_does_comes_in_while_it_is_read():
    driver = reading(working())
    assert "nothing yet" in shown(driver)
    effects = driver.feed(AssistantTextDeltaEvent(session_id=CHILD, submission_id="c", text="I look at the le"))
    assert effects == [PanelChanged()]
    assert "I look at the le" in shown(driver)
    driver.feed(
        AssistantTextDeltaEvent(session_id=CHILD, submission_id="c", text="ver"),
        ToolStartedEvent(session_id=CHILD, call_id="c1", name="bash", arguments='{"command": "make"}'),
        ToolOutputEvent(session_id=CHILD, call_id="c1", text="compiling\n"),
    )
    assert "I look at the lever" in shown(driver)
    assert "Bash make" in shown(driver)
    assert "compiling" in shown(driver)
    assert all(item.id in driver.state.transcript.items for item in driver.items)
    assert "lever" not in str(driver.items), "none of it is in the session's own transcript"


@pytest.mark.parametrize("session", ["child-2", "another"])
def test_j5_events_of_others_are_left_out(session: str):
    driver = reading(working())
    assert driver.feed(AssistantTextDeltaEvent(session_id=session, submission_id="c", text="elsewhere")) == []
    assert "elsewhere" not in shown(driver)


def test_j5_the_same_events_live_or_replayed_show_the_same():
    events: list[AnyEvent] = [
        UserMessageEvent(session_id=CHILD, seq=1, parts=text("Look")),
        AssistantMessageEvent(session_id=CHILD, message=AssistantMessage(seq=2, parts=text("It is there."))),
    ]
    live = reading(working())
    live.feed(*events)
    assert shown(live) == shown(reading(working(), *events))


def test_j5_its_end_shows_where_it_is_read_and_it_can_be_read_afterwards():
    driver = reading(working())
    assert "works" in shown(driver)
    ended(driver)
    assert "has ended" in shown(driver)
    assert "end it" not in shown(driver)
    driver.feed(LeaveChild())
    reading(driver, UserMessageEvent(session_id=CHILD, seq=1, parts=text("Look")), working=False)
    assert "has ended" in shown(driver)
    assert driver.feed(ActOnChild("stop")) == []


def test_j5_keys_of_the_reader_open_the_pager_and_end_it():
    driver = reading(working())
    assert RunCommand(f"/agents {CHILD}") in driver.feed(ActOnChild("open"))
    assert RunCommand(f"/agents end {CHILD}") in driver.feed(ActOnChild("stop"))
    driver.feed(Cancel())
    assert driver.state.reader is None
    assert not operations(driver, InterruptOperation), "Ctrl+C closes what is open first"


def test_j5_the_reader_scrolls_and_stays_within_its_rows():
    words = [
        AssistantMessageEvent(session_id=CHILD, message=AssistantMessage(seq=seq, parts=text(f"line {seq}")))
        for seq in range(1, 60)
    ]
    driver = reading(working(), *words)
    assert "line 59" in shown(driver, 10)
    assert "line 1\n" not in shown(driver, 10)
    up = shown(driver, 10, scroll=20)
    assert "line 59" not in up
    top = child_panel(driver.state, 80, 10, 10_000, DEFAULT)
    assert any(line.text.strip().endswith("line 1") for line in top.lines)
    assert top.scrolled < 10_000


@pytest.mark.parametrize("rows", range(1, 8))
@pytest.mark.parametrize("width", [8, 20, 200])
def test_j5_the_reader_fits_into_any_room(rows: int, width: int):
    driver = reading(working(), UserMessageEvent(session_id=CHILD, seq=1, parts=text("Look into this\n" * 9)))
    panel = child_panel(driver.state, width, rows, 3, DEFAULT)
    assert all(line.width <= width for line in panel.lines)


def test_j5_esc_on_its_block_and_again_ends_that_one_alone():
    driver = on_block(working(), 2)
    driver.feed(Escape())
    assert driver.state.block == 0
    assert driver.state.hint is not None
    assert "ends this sub-agent alone" in driver.state.hint.text
    assert RunCommand("/agents end child-2") in driver.after(0.5).feed(Escape())
    assert not operations(driver, InterruptOperation)
    driver.after(0.1).feed(Escape())
    assert len(operations(driver, InterruptOperation)) == 1, "the next one interrupts the turn with all"


def test_j5_esc_later_ends_the_turn_with_all_of_them():
    driver = on_block(working())
    driver.feed(Escape())
    driver.after(1.5).feed(Escape())
    assert len(operations(driver, InterruptOperation)) == 1
    assert RunCommand("/agents end child-1") not in driver.effects


def test_j5_esc_on_the_block_of_one_that_has_ended_only_leaves_it():
    driver = working()
    ended(driver)
    on_block(driver).feed(Escape())
    assert driver.state.hint is None
    driver.feed(Escape())
    assert len(operations(driver, InterruptOperation)) == 1


def test_j5_its_keys_stand_below_the_block_and_the_other_letters_act():
    driver = on_block(working())
    hint = block_panel(driver.state, 160).lines[0].text
    for words in ("Enter read along", "t its transcript", "x end it"):
        assert words in hint
    assert RunCommand(f"/agents {CHILD}") in driver.feed(ActOnBlock("transcript"))
    assert RunCommand(f"/agents end {CHILD}") in driver.feed(ActOnBlock("stop"))
    ended(driver)
    assert "end it" not in block_panel(driver.state, 160).lines[0].text


def test_j5_keys_reach_the_reader_and_what_is_typed_reaches_the_prompt():
    driver = reading(working())
    pressed: list[str] = []

    class Machine:
        state = driver.state

        def handle(self, intent) -> None:
            driver.feed(intent)

    class Editor:
        cursor, on_first_row, on_last_row = 0, True, True

        def insert_text(self, text: str) -> None: ...

    actions = {name: lambda name=name: bool(pressed.append(name)) or True for name in ("child.up", "child.down")}
    keyboard = Keyboard(Machine(), Editor, actions, lambda: driver.now)  # pyright: ignore
    assert keyboard.press("up") is None
    assert keyboard.press("j", "j") is None
    assert pressed == ["child.up", "child.down"]
    assert driver.state.reader is not None
    assert keyboard.press("h", "h") == "h", "a letter that means nothing here is typed"
    assert driver.state.reader is None


def test_j5_ctrl_b_is_offered_while_a_sub_agent_waits_for_a_command():
    assert not working().state.waits_for_command
    driver = working(in_command=True)
    assert "command" in driver.state.contexts
    driver.feed(MoveToBackground())
    assert len(operations(driver, MoveToBackgroundOperation)) == 1
