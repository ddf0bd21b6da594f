"""Every tool that can be called: its height is that of its rows, its words are found, and copied."""

import json

import pytest
from msgspec.structs import replace

from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import AgentView, DiffView, PlanView, ShellView, TodoView
from tenuto.protocol.part import ToolCallPart
from tenuto.session.exporters.markdown import call_subject
from tenuto.session.exporters.source import Call
from tenuto.session.plans import PLAN_CALL
from tenuto.tool.run.registry import ToolRegistry
from tenuto.tui.render.items import estimate_height, render_item
from tenuto.tui.render.line import copy_text
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.tools import TOOL_RENDERERS
from tenuto.tui.state.item import ToolItem
from tenuto.tui.state.texts import item_text, searched_text
from tests.tui.render import samples

EXPANDED = RenderOptions(detail="expanded", now=100.0)
FOLDED = RenderOptions(now=100.0)
REGISTERED = ToolRegistry().names()
MARKS = {"☐", "▶", "☑", "☒", "•", "…"}
LINES = "\n".join(f"{number}\tword{number} and others of a line that is not short" for number in range(1, 60))
PLAN = "\n\n".join(f"- step{number} of the plan, told in words enough to fill a row or two" for number in range(30))
DIFF = DiffView(path="a.py", diff=samples.MANY, added=30, removed=1)
LONG: dict[str, ToolItem] = {
    "read": samples.tool("read", '{"path":"a.py"}', result=samples.result("read", LINES)),
    "write": samples.tool("write", '{"path":"a.py"}', result=samples.result("write", "done", ui=(DIFF,))),
    "edit": samples.tool("edit", '{"path":"a.py"}', result=samples.result("edit", "done", ui=(DIFF,))),
    "apply_patch": samples.tool(
        "apply_patch",
        samples.PATCH,
        result=samples.result("apply_patch", "done", ui=(DIFF, replace(DIFF, path="b.py", moved_from="c.py"))),
    ),
    "bash": samples.tool(
        "bash", '{"command":"make"}', result=samples.result("bash", LINES, ui=(ShellView(command="make"),))
    ),
    "grep": samples.tool(
        "grep",
        '{"pattern":"word"}',
        result=samples.result("grep", "a.py\n" + "\n".join(f"{number}:word{number}" for number in range(50))),
    ),
    "glob": samples.tool(
        "glob",
        '{"pattern":"*"}',
        result=samples.result("glob", "\n".join(f"src/file{number}.py" for number in range(50))),
    ),
    "todo": samples.tool(
        "todo",
        result=samples.result(
            "todo",
            "saved",
            ui=(TodoView(items=tuple(TodoItem(text=f"task{number} " + "x y " * number) for number in range(30))),),
        ),
    ),
    "plan": samples.tool(
        "plan",
        json.dumps({"plan": PLAN}),
        result=samples.result("plan", "no", ui=(PlanView(text=PLAN, outcome="continued", feedback="much smaller"),)),
    ),
    "fetch": samples.tool("fetch", '{"url":"https://a.org"}', result=samples.result("fetch", LINES)),
    "jobs": samples.tool("jobs", '{"action":"wait","job":"job-1"}', result=samples.result("jobs", LINES)),
    "recall": samples.tool("recall", '{"query":"word"}', result=samples.result("recall", LINES)),
    "agent": samples.tool(
        "agent",
        '{"prompt":"look","agent":"explore","description":"Find the parser"}',
        result=samples.result(
            "agent", LINES, ui=(AgentView(session="3f2a91bc-1", agent="explore", steps=12, tokens=4_000),)
        ),
    ),
    "compact": samples.tool("compact", '{"focus":"names"}', result=samples.result("compact", "It will be.")),
    "skill": samples.tool("skill", '{"name":"release-notes"}', result=samples.result("skill", "Loaded; it follows.")),
}
"""A long call of each tool, with the views that the tool gives."""


def _states(name: str) -> list[ToolItem]:
    done = LONG[name]
    failed = samples.result(name, "It could not be done. " + LINES, output_path="/outputs/1")
    return [
        done,
        replace(done, result=samples.result(name, "short")),
        replace(done, result=samples.result(name, LINES)),
        replace(done, state="failed", result=failed),
        replace(done, state="interrupted", result=samples.result(name, f"interrupted after 9 lines\n{LINES}")),
        replace(done, state="denied", result=samples.result(name, "It was not allowed.")),
        replace(done, state="running", result=None, output=LINES),
        replace(done, state="waiting", result=None),
    ]


def test_every_tool_is_drawn_by_a_renderer_of_its_own():
    assert set(TOOL_RENDERERS) == {*REGISTERED, PLAN_CALL}, "a plan is shown as a call"


@pytest.mark.parametrize("options", [FOLDED, EXPANDED], ids=["folded", "expanded"])
@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("name", REGISTERED)
def test_the_estimated_height_of_a_call_is_near_the_drawn_one(name, width, options):
    for item in (*_states(name), *(each for each in samples.tool_items() if each.name == name)):
        drawn, estimated = len(render_item(item, width, options)), estimate_height(item, width, options)
        assert abs(drawn - estimated) <= max(1, 0.15 * drawn), item


@pytest.mark.parametrize("name", REGISTERED)
def test_every_word_of_a_call_is_found_and_copied(name):
    for item in (*_states(name), *(each for each in samples.tool_items() if each.name == name)):
        if item.state == "waiting":  # a head alone, of several rows
            continue
        _head, *body = render_item(item, 200, RenderOptions(detail="expanded", diff="unified"))
        words = set(copy_text(body).split()) - MARKS
        assert words or not body
        for text in (searched_text(item), item_text(item)):
            assert not [word for word in words if word not in text], item


def test_a_plan_is_as_high_as_its_rows_is_found_and_copied():
    item = LONG["plan"]
    assert estimate_height(item, 100, FOLDED) == len(render_item(item, 100, FOLDED)) == 27
    assert "step29" in searched_text(item)
    assert "- step29 of the plan" in item_text(item)


@pytest.mark.parametrize("name", ["edit", "write"])
def test_a_change_stands_under_the_path_that_users_read_however_the_model_wrote_it(name):
    """On the screen and in exports; the link of the screen leads to the file all the same."""
    arguments = '{"path":"/home/ann/shop/src/a.py","content":"x"}'
    done = samples.result(name, "done", ui=(replace(DIFF, path="src/a.py"),))
    (head, *_) = render_item(samples.tool(name, arguments, result=done), 100, FOLDED)
    assert f"{name.title()} src/a.py · +30" in head.text
    assert any("/home/ann/shop/src/a.py" in style for _text, style in head.spans)
    call = Call(part=ToolCallPart(id="c1", name=name, arguments=arguments), result=done)
    assert call_subject(call) == "src/a.py"
    outside = samples.result(name, "done", ui=(replace(DIFF, path="/etc/a.py"),))
    assert call_subject(Call(part=call.part, result=outside)) == "/etc/a.py"


def test_what_a_server_answered_is_shown_without_the_tags_for_the_model():
    answered = samples.result("mcp__time__now", "<mcp-result>\nit is noon\n</mcp-result>")
    item = samples.tool("mcp__time__now", '{"zone":"UTC"}', result=answered)
    shown = "\n".join(line.text for line in render_item(item, 80, EXPANDED))
    assert "it is noon" in shown and "mcp-result" not in shown and "mcp__time__now" in shown
