"""Before an answer ends a turn that nobody watches, what is unchecked or open is told once (B7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.agent.endings import find_unchecked
from tenuto.protocol.entry import TodoEntry, TodoItem
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import AssistantMessage, FileUse, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart
from tests.core.harness import PROTOCOLS, agent, one_call_each
from tests.server import Call

ON = {"TENUTO_AGENT__FINAL_CHECK": "true"}
EDIT = Call("write", {"path": "a.py", "content": "x = 1\n"})
CHECK = Call("bash", {"command": "python a.py"})
TODO = Call("todo", {"items": [{"text": "write tests", "status": "in_progress"}]})
DONE = Call("todo", {"items": [{"text": "write tests", "status": "done"}]})


async def notes(tmp_path, *steps: Call | None, **changes) -> list[str]:
    """Return what the model was told beyond its calls' results."""
    async with agent(tmp_path, one_call_each(*steps), environ=ON, **changes) as running:
        assert (await running.ask("make it")).outcome == "completed"
        texts = [item.text for item in running.server.requests[-1].items if item.kind in ("user", "system")]
        told = [text for text in texts if "the last message is the one that counts" in text]
        assert len([e for e in running.of(NoticeEvent) if e.kind == "final check"]) == len(told)
        return told


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b7_edits_that_no_command_ran_after_are_told_once(tmp_path, protocol):
    (told,) = await notes(tmp_path, EDIT, None, EDIT, None, model=f"{protocol}/test")
    assert "(a.py)" in told


@pytest.mark.parametrize(
    "steps",
    [(EDIT, CHECK), (CHECK,), (Call("write", {"path": "README.md", "content": "x"}),), (TODO, DONE), ()],
    ids=["checked", "no edit", "prose", "all done", "nothing"],
)
async def test_b7_with_nothing_open_nothing_is_told(tmp_path, steps):
    assert await notes(tmp_path, *steps) == []


async def test_b7_an_edit_after_the_check_and_open_todo_items_are_told(tmp_path):
    (told,) = await notes(tmp_path, TODO, EDIT, CHECK, EDIT)
    assert "No command ran after your last edits" in told
    assert "write tests" in told


async def test_b7_where_a_user_decides_each_step_nothing_is_told(tmp_path):
    assert await notes(tmp_path, EDIT, mode="edits", interactive=True) == []
    (tmp_path / "alone").mkdir()
    (told,) = await notes(tmp_path / "alone", EDIT, mode="edits", interactive=False)
    assert told


async def test_b7_the_setting_switches_it_off(tmp_path):
    async with agent(tmp_path, one_call_each(EDIT), environ={"TENUTO_AGENT__FINAL_CHECK": "false"}) as running:
        await running.ask("make it")
        assert len(running.server.requests) == 2


USER = UserMessage(seq=0, parts=(TextPart(text="go"),))
STEPS = st.lists(st.sampled_from(["edit", "bash", "read", "denied", "todo", "say"]), max_size=12)


def entry(kind: str):
    if kind == "todo":
        return TodoEntry(seq=1, items=(TodoItem(text="left"),))
    if kind == "say":
        return AssistantMessage(seq=1, parts=())
    name = {"edit": "edit", "read": "read"}.get(kind, "bash")
    files = (FileUse(path="/w/a.py", op="edit" if kind == "edit" else "read"),) if kind in ("edit", "read") else ()
    return ToolResultMessage(seq=1, call_id="1", name=name, parts=(), files=files, denied=kind == "denied")


@given(STEPS, STEPS)
def test_b7_only_the_order_of_edits_and_commands_of_this_turn_counts(earlier, steps):
    path = [USER, *map(entry, earlier), USER, *map(entry, steps)]
    last_edit = max((place for place, kind in enumerate(steps) if kind == "edit"), default=-1)
    last_run = max((place for place, kind in enumerate(steps) if kind == "bash"), default=-1)
    text = find_unchecked(path, (TodoItem(text="left"),))
    assert ("No command ran" in text) == (last_edit > last_run)
    assert ("left" in text.replace("last", "")) == ("todo" in steps)
