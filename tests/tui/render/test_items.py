"""Items: what folds, what counts, what never gets through."""

import json
import re
import subprocess
import sys
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenuto.protocol.message import (
    CompactionEntry,
    DenialView,
    FoundView,
    LinesView,
    PageView,
    PlanView,
    ShellView,
    ToolResultMessage,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import TextPart, WebSearch, WebSource
from tenuto.tool.output import ToolOutput, bound_output
from tenuto.tui.render.items import estimate_height, gap_before, render_item
from tenuto.tui.render.line import copy_text
from tenuto.tui.render.live import ItemRenderer
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.item import (
    AssistantItem,
    CompactionItem,
    NoticeItem,
    SearchItem,
    ShellItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tests.tui.render import samples
from tests.tui.render.test_markdown import PAYLOADS, UNSAFE

EXPANDED = RenderOptions(detail="expanded", now=100.0)
FOLDED = RenderOptions(now=100.0)
STATES = ["writing", "ready", "waiting", "running", "done", "failed", "interrupted", "denied"]
TOOLS = ["read", "write", "edit", "bash", "grep", "glob", "todo", "fetch", "recall", "compact", "plan", "mcp__x", ""]


def text_of(item, options=FOLDED, width=80):
    return "\n".join(line.text for line in render_item(item, width, options))


def test_one_unfolded_item_shows_what_ctrl_o_shows_of_all():
    for item in [*samples.tool_items(), *samples.other_items()]:
        assert text_of(replace(item, folded=False)) == text_of(item, EXPANDED)


def test_folded_output_says_how_much_is_left_out():
    output = "\n".join(f"row {number}" for number in range(100))
    shown = text_of(samples.tool("bash", '{"command":"x"}', result=samples.result("bash", output)))
    assert "row 0" in shown
    assert "… +93 lines" in shown
    assert "row 99" in shown
    assert "row 50" not in shown


def test_a_running_command_shows_its_last_lines_and_its_time():
    item = samples.tool("bash", '{"command":"make"}', state="running", output="1\n2\n3\n4\n5\n6\n7\n", started=95.0)
    assert text_of(item).split("\n") == ["● Bash make · 5s", *[f"    {number}" for number in "34567"]]
    assert "5s" not in text_of(replace(item, started=99.0))


def test_what_became_of_a_long_command_is_never_cut():
    command = "echo " + "x" * 500
    item = samples.tool("bash", f'{{"command":"{command}"}}', state="interrupted", seconds=3.0)
    assert text_of(item, width=50).endswith("… · interrupted · 3.0s")


def test_an_open_approval_shows_the_whole_command():
    item = samples.tool("bash", '{"command":"rm -r a\\nrm -r b"}', state="waiting")
    assert "rm -r b" in text_of(item)


def test_a_denied_call_shows_what_the_user_said_to_it():
    said = samples.result("bash", "It was not run. They said: use pytest", ui=(DenialView(feedback="use pytest"),))
    item = samples.tool("bash", '{"command":"make"}', state="denied", result=said)
    assert text_of(item) == "⊘ Bash make · denied\n    your reason: use pytest"
    silent = replace(item, result=samples.result("bash", "It was not run."))
    assert text_of(silent) == "⊘ Bash make · denied"


def test_a_plan_that_is_called_plan_is_not_called_so_twice():
    item = samples.tool("plan", json.dumps({"plan": "## Plan\n\n1. Look"}), state="waiting")
    assert text_of(item) == "? Plan · waiting for your answer"


def test_a_failure_is_told_quietly():
    item = samples.tool("fetch", '{"url":"u"}', state="failed", result=samples.result("fetch", "404"))
    styles = {style for line in render_item(item, 80, FOLDED) for text, style in line.spans if "404" in text}
    assert styles == {"muted"}


@pytest.mark.parametrize(
    ("name", "view", "fact"),
    [
        ("grep", FoundView(lines=2, files=2), "2 matches"),
        ("grep", FoundView(), "nothing found"),
        ("grep", FoundView(lines=1_200, files=8, partial=True), "1,200 matching lines in 8 files"),
        ("grep", FoundView(files=2), "2 files"),
        ("glob", FoundView(files=5_000, partial=True), "5,000 files"),
        ("read", LinesView(count=2), "2 lines"),
        ("fetch", PageView(status=200, media_type="text/html", size=24_000), "200 · text/html · 24 KB"),
        ("fetch", PageView(status=200, size=24_000, partial=True), "200 · no type · 24 KB and more"),
    ],
)
def test_the_head_counts_what_came_back_by_the_view_and_not_by_the_text(name, view, fact):
    with_view = samples.result(name, "7 matching lines in 9 files\n", ui=(view,))
    assert text_of(samples.tool(name, result=with_view)).split("\n")[0].endswith(f" · {fact}")


@pytest.mark.parametrize("name", ["grep", "glob", "read", "recall"])
def test_a_result_of_an_old_log_without_a_view_has_its_lines_counted(name):
    item = samples.tool(name, result=samples.result(name, "a.py\nb.py", truncated=True))
    assert text_of(item).split("\n")[0].endswith(" · 2 lines · not all of it")


def test_how_a_command_ended_is_said_once():
    view = ShellView(command="x", exit_code=3, ending="[Exit code 3 · /project]")
    item = samples.tool("bash", result=samples.result("bash", "out\n[Exit code 3 · /project]\n[still]", ui=(view,)))
    assert text_of(item) == "● Bash · exit 3\n    out\n    [still]"
    old = replace(item, result=samples.result("bash", "out\n[Exit code 0 · /p]", ui=(ShellView(command="x"),)))
    assert text_of(old) == "● Bash\n    out\n    [Exit code 0 · /p]"


def test_copying_output_leaves_mark_and_indentation_out():
    item = samples.tool("bash", '{"command":"x"}', result=samples.result("bash", "a\n\tb\n" + "c" * 200))
    assert copy_text(render_item(item, 60, FOLDED)) == "Bash x\na\n\tb\n" + "c" * 200


def test_copying_a_message_gives_its_text():
    text = "a long message of many words, " * 8 + "\n\n日本語の文章"
    assert copy_text(render_item(UserItem(text=text, seq=1), 50, FOLDED)) == text


def test_thinking_is_one_row_when_it_is_over():
    item = ThinkingItem(text="a\nb\nc", final=True, seconds=3)
    assert text_of(item) == "✻ Thought for 3.0s"
    assert text_of(item, EXPANDED).split("\n") == ["✻ Thought for 3.0s", "    a", "    b", "    c"]


def test_thinking_can_be_kept_from_the_screen_while_it_streams():
    item = ThinkingItem(text="a\nb", started=90.0)
    assert "b" in text_of(item)
    assert text_of(item, RenderOptions(now=100.0, show_thinking=False)) == "✻ Thinking 10s"


def test_a_compaction_says_what_it_did_and_unfolds_its_summary():
    item = next(item for item in samples.other_items() if getattr(item, "entry", None))
    head = text_of(item, width=120)
    for fact in ("182k → ~24k tokens", "summarised in place", "12s", "$0.034", "cache 99 %"):
        assert fact in head
    assert "Mend the area function" not in head
    assert "Mend the area function" in text_of(item, EXPANDED)


def test_what_can_be_done_with_a_proposed_compaction_is_whole_on_every_screen():
    item = next(item for item in samples.other_items() if getattr(item, "entry", None))
    for width in (24, 40, 80):
        proposed = msgspec.structs.replace(item, proposed=True)
        rows = render_item(proposed, width, FOLDED)
        assert all(row.width <= width for row in rows)
        words = " ".join(" ".join(row.text for row in rows).split())
        assert "/compact accept · /compact edit · /compact drop" in words


def told(text: str, width: int) -> list[str]:
    return [line.text for line in render_item(NoticeItem(text=text, kind="command"), width)]


def test_rows_of_two_columns_hang_below_the_second_where_that_has_room():
    said = "/model NAME  show or change the model that answers\n/export [x]"
    said += "\n             the session as a file of that kind"
    assert told(said, 40) == [
        "  /model NAME  show or change the model",
        "               that answers",
        "  /export [x]",
        "               the session as a file of",
        "               that kind",
    ]
    assert told(said.replace("  ", " " * 9), 30) == [
        "  /model NAME  show or change",
        "      the model that answers",
        "  /export [x]",
        "      the session as a file of",
        "      that kind",
    ]


def test_calls_stand_together_and_messages_apart():
    tool, answer = samples.tool("read"), AssistantItem(text="x")
    assert gap_before(None, answer) == 0
    assert gap_before(answer, tool) == 1
    assert gap_before(tool, tool) == 0
    assert gap_before(tool, answer) == 1


@pytest.mark.parametrize("detail", ["folded", "expanded"])
def test_after_a_call_with_rows_below_its_head_comes_an_empty_one(detail):
    following = samples.tool("read")
    for item in [*samples.tool_items(), ThinkingItem(text="a", final=True), ThinkingItem(text="a", started=9.0)]:
        item = replace(item, folded=detail == "folded")
        rows = render_item(item, 80, RenderOptions(detail=detail, now=100.0))
        if getattr(item, "state", "") == "waiting":  # its head alone may have several rows
            continue
        assert gap_before(item, following) == int(len(rows) > 1), text_of(item)


def test_a_failure_that_stays_one_is_told_loudly():
    item = samples.tool("fetch", '{"url":"u"}', state="failed", result=samples.result("fetch", "404"))
    quiet, loud = (render_item(replace(item, unresolved=said), 80, FOLDED)[0].spans for said in (False, True))
    assert [style for text, style in quiet if text.strip() in ("✗", "failed")] == ["tool.failed", "muted"]
    assert [style for text, style in loud if text.strip() in ("✗", "failed")] == ["error", "error"]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("approved", "approved"), ("continued", "planning goes on"), ("unasked", "nobody to approve it"), ("aside", "")],
)
def test_a_plan_is_shown_as_markdown_with_what_became_of_it(outcome, said):
    view = PlanView(text="# Mend it\n\n1. **first** a test", outcome=outcome, feedback="smaller steps")
    item = samples.tool("plan", '{"plan":"# Mend it"}', result=samples.result("plan", "x", ui=(view,)))
    head, *rows = text_of(item).split("\n")
    assert head == "● Plan Mend it" + (f" · {said}" if said else "")
    assert rows == ["    Mend it", "", "    1. first a test", "    You: smaller steps"]
    longer = msgspec.structs.replace(view, text="\n\n".join(f"step {number}" for number in range(40)))
    item = samples.tool("plan", "{}", result=samples.result("plan", "x", ui=(longer,)))
    assert "… +55 rows" in text_of(item)
    assert "step 39" in text_of(item, EXPANDED)


def test_a_match_is_told_from_its_place():
    item = samples.tool("grep", result=samples.result("grep", "a/b.py:12:def x():\na/b.py-13-    pass\nNo more"))
    rows = render_item(item, 80, FOLDED)
    assert [text for text, style in rows[1].spans if style == "path"] == ["a/b.py"]
    assert [text for text, style in rows[2].spans if style == "path"] == ["a/b.py"]
    assert copy_text(rows[1:]) == "a/b.py:12:def x():\na/b.py-13-    pass\nNo more"


def test_matches_below_the_name_of_their_file_are_told_from_it():
    item = samples.tool("grep", result=samples.result("grep", "shop/price.py\n9:def total():\n10-    pass\nNo more"))
    name, match, around, notice = (row.spans for row in render_item(item, 80, FOLDED)[1:])
    assert ("shop/price.py", "path") in name
    assert [text for text, style in match if style == "faint"] == ["9:"]
    assert [text for text, style in around if style == "faint"] == ["10-"]
    assert not {style for _, style in notice} & {"path", "faint"}


def _everything_hostile(payload):
    result = ToolResultMessage(call_id="c", name=payload, parts=(TextPart(text=f"a{payload}b"),), output_path=payload)
    arguments = json.dumps({"path": payload, "command": payload, "x": payload, "offset": 3})
    yield UserItem(text=f"a{payload}", seq=1)
    yield AssistantItem(text=payload, final=True)
    yield ThinkingItem(text=payload, final=True)
    pages = (WebSource(f"https://{payload}", payload), WebSource(payload))
    for error in ("", payload):
        search = WebSearch(id=payload, query=payload, sources=pages, error=error, done=True)
        yield from (SearchItem(search=search, folded=folded) for folded in (True, False))
    yield SourcesItem(sources=pages)
    yield ThinkingItem(text=payload)
    yield ShellItem(command=payload, output=payload, exit_code=1, final=True, output_path=payload)
    yield ShellItem(command=payload, output=payload, running=True)
    yield NoticeItem(text=payload, kind="command")
    for name in [*TOOLS, payload]:
        for state in STATES:
            yield ToolItem(
                name=name, state=state, arguments=arguments, summary=payload, output=payload, result=result, final=True
            )  # fmt: skip


@pytest.mark.parametrize("payload", [*PAYLOADS, "tab\tand\r\nlines\n", "\ud800"])
@pytest.mark.parametrize("options", [FOLDED, EXPANDED], ids=["folded", "expanded"])
def test_r088_nothing_hostile_gets_through(payload, options):
    for item in _everything_hostile(payload):
        for line in render_item(item, 50, options):
            assert line.width <= 50
            for text, style in line.spans:
                assert not UNSAFE.search(text), (item, text)
                assert not UNSAFE.search(style)


@given(
    text=st.lists(st.sampled_from([*"ab \n\t", "日", "👩‍👩‍👧", "e\u0301", "- ", "```"]), max_size=200).map("".join),
    width=st.integers(12, 130),
    name=st.sampled_from(TOOLS),
    state=st.sampled_from(STATES),
    options=st.sampled_from([FOLDED, EXPANDED]),
)
def test_r100_no_row_is_wider_than_the_screen(text, width, name, state, options):
    arguments = json.dumps({"path": text, "command": text, "pattern": text})
    items = [
        UserItem(text=text, seq=1),
        AssistantItem(text=text),
        ThinkingItem(text=text),
        ShellItem(command=text, output=text, exit_code=3),
        NoticeItem(text=text, level="error"),
        samples.tool(name, arguments, state=state, result=samples.result(name, text), output=text, seconds=3),
    ]
    for item in items:
        for line in render_item(item, width, options):
            assert line.width <= width


@pytest.mark.parametrize("options", [FOLDED, EXPANDED], ids=["folded", "expanded"])
def test_the_estimate_of_each_item_is_near(options):
    for item in samples.other_items():
        real, guess = (len(render_item(item, 80, options)), estimate_height(item, 80, options))
        assert abs(real - guess) <= max(2, 0.15 * real), item


HEAVY = {"textual", "rich", "pygments", "markdown_it", "pydantic", "httpx"}


def _heavy_modules_after(statement):
    code = f"""
import sys
from tenuto.tui.render import items, live, theme
from tenuto.tui.state.item import NoticeItem
{statement}
print(*sorted({HEAVY} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_nothing_heavy_is_imported_before_the_first_markdown():
    draw = "items.render_item(NoticeItem(text='hello', kind='command'), 80); theme.find_theme('dark').resolve('text')"
    assert _heavy_modules_after(draw) == []


def test_warming_up_imports_what_markdown_needs():
    assert _heavy_modules_after("live.warm_up()") == ["markdown_it", "pygments", "rich"]


@pytest.mark.parametrize("reason", get_args(CompactionReason))
def test_every_reason_to_compact_has_words_while_it_runs_and_afterwards(reason):
    running = CompactionItem(id=1, reason=reason, running=True, final=False)
    assert "…" not in "".join(line.text for line in render_item(running, 100))
    entry = CompactionEntry(summary="s", first_kept_index=1, reason=reason, tokens_before=9, tokens_after=1)
    assert render_item(CompactionItem(id=2, reason=reason, entry=entry, final=True), 100)


def test_an_item_that_cannot_be_drawn_costs_its_own_lines_only(capsys):
    broken = NoticeItem(id=1, text=None, final=True)
    render = ItemRenderer(RenderOptions)
    assert "cannot be drawn" in "".join(line.text for line in render(broken, 80))
    assert "Traceback" in capsys.readouterr().err
    assert [line.text for line in render(NoticeItem(id=2, text="fine", final=True), 80)]


def test_nothing_to_compact_is_an_answer_and_no_fault():
    item = CompactionItem(id=1, needless=True, error="nothing to compact: there are no messages yet", final=True)
    text = "".join(line.text for line in render_item(item, 100))
    assert "Nothing to compact: there are no messages yet" in text
    assert "failed" not in text


def test_a_folded_failure_can_be_read_and_says_how_much_more_there_is():
    words = " ".join(f"word{number}" for number in range(80))
    item = samples.tool("edit", '{"path":"a.py"}', state="failed", result=samples.result("edit", words))
    rows = text_of(item, width=40).split("\n")
    assert len(rows) == 5
    assert "word0 " in rows[1]
    assert all(not row.endswith("…") for row in rows[1:4])
    assert re.fullmatch(r" *… \+\d+ rows", rows[4])
    assert "word79" in text_of(replace(item, folded=False), width=40)


def test_output_that_was_cut_is_counted_as_it_was_printed(tmp_path):
    printed = "".join(f"row {number}\n" for number in range(5_000))
    output = bound_output(ToolOutput.of_text(printed), 30_000, 2_000, "out", lambda name, _text: tmp_path / name)
    result = replace(samples.result("bash", ""), parts=output.parts, truncated=True)
    assert "… +4,993 lines" in text_of(samples.tool("bash", '{"command":"x"}', result=result)).split("\n")[3]
    again = TextPart(
        text="row\n" * 50 + "[… more was left out here to fit the context window. All of it]\n" + "row\n" * 50
    )
    unknown = text_of(samples.tool("bash", '{"command":"x"}', result=replace(result, parts=(again,))))
    assert "… +93 lines at least" in unknown
    quoted = text_of(samples.tool("bash", '{"command":"x"}', result=replace(result, truncated=False)))
    assert "4,993" not in quoted


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("there is no pin 7; /pins shows 1", "There is no pin 7; /pins shows 1"),
        ("/copy takes a number", "/copy takes a number"),
        ("settings.toml cannot be written", "settings.toml cannot be written"),
    ],
)
def test_an_error_begins_as_a_sentence_and_names_stay_as_they_are(said, shown):
    assert text_of(NoticeItem(id=1, text=said, level="error")).partition(" ")[2].strip() == shown


def test_f12_the_users_own_output_folds_beyond_twenty_lines_and_names_the_key():
    options = RenderOptions(expand_key="Ctrl+O")
    short = ShellItem(command="ls", output="\n".join(f"f{number}" for number in range(20)), final=True)
    assert len(render_item(short, 80, options)) == 21
    long = ShellItem(command="ls", output="\n".join(f"f{number}" for number in range(50)), final=True)
    rows = [line.text.strip() for line in render_item(long, 80, options)]
    assert rows[5:8] == ["f4", "… +30 lines · Ctrl+O expand", "f35"]
    assert rows[-1] == "f49"


@pytest.mark.parametrize("width", [20, 40, 100])
def test_f12_every_fold_names_the_key_where_there_is_room(width):
    options = RenderOptions(expand_key="Ctrl+O")
    for item in (
        ShellItem(command="x", output="y\n" * 99, final=True),
        UserItem(text="z\n" * 99, seq=1, final=True),
    ):
        rows = [line.text.strip(" ▌") for line in render_item(item, width, options) if "… +" in line.text]
        assert len(rows) == 1
        assert rows[0].endswith("Ctrl+O expand") == (width >= 40)
