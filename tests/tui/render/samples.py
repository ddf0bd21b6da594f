"""What the golden files are drawn from: one of everything that a transcript shows."""

from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import (
    CompactionEntry,
    DiffView,
    FoundView,
    LinesView,
    NotNowView,
    OwnView,
    PageView,
    PlanView,
    ShellView,
    TodoView,
    ToolResultMessage,
)
from tenuto.protocol.part import ImagePart, TextPart, WebSearch, WebSource
from tenuto.protocol.usage import ContextPart, ContextReport, SizePoint, Usage
from tenuto.session.view.pairing import INTERRUPTED_TEXT, interruption
from tenuto.tui.state.item import (
    AssistantItem,
    CompactionItem,
    Item,
    NoticeItem,
    SearchItem,
    ShellItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)

PAGES = (
    WebSource("https://docs.python.org/3.15/whatsnew/3.15.html", "What's new in Python 3.15"),
    WebSource("https://example.org/notes?id=7"),
)
MARKDOWN = """\
# The *first* heading

A paragraph with **bold**, *italic*, ~~struck~~ and `code`, a [link](https://example.com/path) and an address
<https://tenuto.dev>. It is long enough to wrap on every screen that the golden files know, and then some more.

日本語の文章は単語の間に空白がないので、どこでも改行できますが、句読点は行頭に来ません。絵文字👩‍👩‍👧も一つの文字です。

## Lists

- one
- two, which is so long that it has to be wrapped below itself and not below its own bullet, on forty cells
  - nested
    1. deep
    2. deeper

  a paragraph of the second item
- [ ] open
- [x] done

7. seven
8. eight
   ```python
   def answer(question: str) -> int:
   \treturn 42  # always
   ```

> A quote that is long enough to be wrapped, so that its bar is seen on more than a single row of the screen.
>
> > and one inside it

| Name | Count | What it is |
|:-----|------:|:----------:|
| alpha | 1 | the first of them, with a description that does not fit into a narrow column |
| ベータ | 22 | `second` |

---

    indented code stays as it is

```
no language, and a line that is far too long for forty cells, so that it is cut without losing one single space
```
"""

DIFF = """\
@@ -8,6 +8,7 @@ def area
 import math

-def area(radius):
-    return 3.14 * radius * radius
+def area(radius: float) -> float:
+    \"\"\"Return the area.\"\"\"
+    return math.pi * radius * radius

 def other():
@@ -40,3 +41,2 @@
 last = 1
-unused = 2
 end = 3"""

PLAN = """\
# Fix the total

1. Write a **failing test** for a discount of 50 %
2. Take the discount off once, in `shop/price.py`
3. Run the tests

Nothing else is touched."""

ENDINGS = "@@ -1,3 +1,4 @@\n one\r\n-two\r\n+two\n+and a half\n-three\n\\ No newline at end of file\n+three\n"
LONG_LINE = '@@ -1 +1 @@\n-{"a": [' + "1, " * 200 + ']}\n+{"a": [' + "2, " * 200 + "]}"
RENAMED = """\
diff --git a/old.bin b/new.bin
similarity index 98%
rename from old.bin
rename to new.bin
index 1d2c3b4..5e6f7a8 100644
Binary files a/old.bin and b/new.bin differ
@@ 1,234 more lines of this diff are not shown @@"""
MANY = "@@ -1,1 +1,30 @@ fn main()\n-let x = 0;\n" + "\n".join(f"+let x{number} = {number};" for number in range(30))


def result(name: str, text: str, **fields: object) -> ToolResultMessage:
    return ToolResultMessage(call_id="c1", name=name, parts=(TextPart(text=text),), **fields)  # type: ignore[arg-type]


DRAWN = OwnView(
    extension="counting",
    lines=(
        ((".py   ", "path"), ("##########", "accent"), (" 30", "dim")),
        ((".md   ", "path"), ("#", "accent"), (" 4 \x1b[31m", "no such style")),
        (("a row that is too long for a narrow screen, and is wrapped there at its words, not cut", "text"),),
    ),
)


def tool(name: str, arguments: str = "{}", **fields: object) -> ToolItem:
    state = fields.pop("state", "done")
    return ToolItem(name=name, arguments=arguments, state=state, call_id="c1", **fields)  # type: ignore[arg-type]


PATCH = (
    '{"input":"*** Begin Patch\\n*** Update File: src/area.py\\n@@\\n-a\\n+b\\n*** Add File: new.py\\n+a = 1\\n'
    '*** Update File: b.py\\n*** Move to: lib/b.py\\n*** Delete File: old.py\\n*** End Patch"}'
)


def tool_items() -> list[Item]:
    numbered = "\n".join(f"{number}\tline {number}" for number in range(10, 40))
    output = "\n".join(f"test {number} \x1b[32mPASSED\x1b[0m" for number in range(20))
    todos = (
        TodoItem(text="read the code", status="done"),
        TodoItem(text="write a failing test, and then the shortest change that makes it pass", status="in_progress"),
        TodoItem(text="clean up"),
        TodoItem(text="not needed", status="cancelled"),
    )
    change = DiffView(path="src/area.py", diff=DIFF, added=3, removed=3)
    created = DiffView(path="new.py", diff="@@ -0,0 +1,2 @@\n+a = 1\n+b = 2", added=2, removed=0, created=True)
    moved = DiffView(path="lib/b.py", diff="", moved_from="b.py")
    deleted = DiffView(path="old.py", diff="@@ -1,1 +0,0 @@\n-x = 1", removed=1, deleted=True)
    report = output + "\n[Exit code 1 · /project]"
    exit_one = ShellView(command="pytest", exit_code=1, ending="[Exit code 1 · /project]")
    page = PageView(status=200, media_type="text/html", size=2_400)
    return [
        tool(
            "read",
            '{"path":"src/area.py","offset":10,"limit":30}',
            result=result("read", numbered, ui=(LinesView(count=30),)),
        ),
        tool("edit", '{"path":"src/area.py"}', result=result("edit", "done", ui=(change,))),
        tool(
            "edit",
            '{"path":"src/area.py","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}',
            result=result("edit", "done", ui=(change,)),
        ),
        tool("write", '{"path":"new.py"}', result=result("write", "done", ui=(created,))),
        tool("apply_patch", PATCH, result=result("apply_patch", "done", ui=(change, created, moved, deleted))),
        tool(
            "apply_patch",
            '{"input":"*** Begin Patch\\n*** Delete File: old.py\\n*** End Patch"}',
            result=result("apply_patch", "done", ui=(deleted,)),
        ),
        ToolItem(name="apply_patch", state="writing", characters=2_048),
        tool(
            "bash",
            '{"command":"pytest -q tests/unit tests/integration --maxfail=1 -k \'not slow\'"}',
            seconds=4.2,
            result=result("bash", report, ui=(exit_one,), is_error=True),
            state="failed",
        ),
        tool("bash", '{"command":"make"}', state="running", output="a\nb\nc\nd\ne\nf\ng\n", started=90.0),
        tool("bash", '{"command":"rm -r build\\nrm -r dist"}', state="waiting"),
        tool("bash", '{"command":"sleep 9"}', state="interrupted", result=result("bash", INTERRUPTED_TEXT)),
        tool("bash", '{"command":"tick"}', state="interrupted", result=result("bash", interruption("1\n2\n", 2))),
        tool("bash", '{"command":"curl x | sh"}', state="denied"),
        tool(
            "grep",
            '{"pattern":"radius"}',
            result=result("grep", "a.py:1: radius\nb.py:2: radius\n[2 files]", ui=(FoundView(files=2, lines=2),)),
        ),
        tool(
            "glob",
            '{"pattern":"*.py"}',
            result=result("glob", "\n".join(f"file{n}.py" for n in range(9)), ui=(FoundView(files=9),)),
        ),
        tool("todo", result=result("todo", "ok", ui=(TodoView(items=todos),))),
        tool(
            "fetch",
            '{"url":"https://example.com/page"}',
            result=result("fetch", "https://example.com/page · 200 · text/html · 2.4 KB\n\n" + "x" * 2_400, ui=(page,)),
            seconds=1.5,
        ),
        tool("fetch", '{"url":"https://example.com/no"}', state="failed", result=result("fetch", "404 not found")),
        tool(
            "compact",
            '{"focus":"the parser"}',
            result=result("compact", "Nothing was done.", ui=(NotNowView(reason="nothing new"),), is_error=True),
        ),
        tool(
            "line_counts",
            '{"ending":""}',
            result=result("line_counts", ".py: 30\n.md: 4", ui=(DRAWN,)),
        ),
        tool("mcp__db__query", '{"sql":"select 1","limit":5}', result=result("query", "1\n2\n3\n4\n5\n6\n7")),
        tool(
            "plan",
            state="done",
            arguments='{"plan":"# Fix the total"}',
            result=result("plan", "approved", ui=(PlanView(text=PLAN, outcome="approved", mode="edits", edited=True),)),
        ),
        tool(
            "bash",
            '{"command":"pytest"}',
            result=result("bash", "1 failed\n[Exit code 1 · /project]", ui=(exit_one,)),
            state="failed",
            unresolved=True,
        ),
        ToolItem(name="write", state="writing", characters=12_345),
    ]


def diff_items() -> list[Item]:
    def edit(path: str, diff: str, added: int, removed: int) -> Item:
        view = DiffView(path=path, diff=diff, added=added, removed=removed)
        return tool("edit", f'{{"path":"{path}"}}', result=result("edit", "done", ui=(view,)))

    return [
        edit("src/area.py", DIFF, 3, 3),
        edit("notes.txt", ENDINGS, 3, 2),
        edit("data.json", LONG_LINE, 1, 1),
        edit("other", RENAMED, 0, 0),
        edit("many.rs", MANY, 30, 1),
    ]


def context_report() -> ContextReport:
    parts = [("system", 2_100), ("tools", 6_400), ("summary", 3_900), ("user", 1_800), ("answers", 9_700)]
    parts += [("calls", 4_100), ("results", 61_200), ("notes", 700)]
    history = [(1, 9_000), (40, 61_000), (90, 158_000), (91, 24_000), (140, 89_900)]
    return ContextReport(
        parts=tuple(ContextPart(name=name, tokens=tokens) for name, tokens in parts),  # type: ignore[arg-type]
        tokens=89_900,
        estimated=False,
        window=200_000,
        known=True,
        trigger=167_000,
        free=77_100,
        reserve=33_000,
        history=tuple(SizePoint(seq=seq, tokens=tokens, compacted=seq == 91) for seq, tokens in history),
        facts=(("cache", "read 98 % of the last request"),),
    )


def other_items() -> list[Item]:
    image = ImagePart(sha256="a" * 64, media_type="image/png", width=820, height=600, name="screen.png")
    entry = CompactionEntry(
        summary="## Goal\n\nMend the area function.\n\n- [x] found it\n- [ ] test it",
        first_kept_index=12,
        tokens_before=182_000,
        tokens_after=24_100,
        rung="same prefix",
        reason="threshold",
        duration=12.4,
        usage=Usage(input=1_000, cache_read=180_000, output=2_000, cost=0.034),
    )
    thoughts = "\n".join(f"thought {number}" for number in range(7))
    return [
        UserItem(text="Please fix the area function.\n\nIt is wrong.", images=(image,), seq=4, final=True),
        UserItem(text="and run the tests", seq=0),
        UserItem(text="\n".join(f"pasted {number}" for number in range(40)), seq=9, origin="command", final=True),
        ThinkingItem(text=thoughts, final=True, seconds=12.3),
        ThinkingItem(text=thoughts, started=95.0),
        SearchItem(search=WebSearch(id="1", query="python 3.15 release date")),
        SearchItem(search=WebSearch(id="2", query="python 3.15 release date", sources=PAGES, done=True), final=True),
        SearchItem(
            search=WebSearch(id="3", query="python 3.15 wheels", sources=PAGES, done=True), final=True, folded=False
        ),
        SearchItem(search=WebSearch(id="4", query="one too many", error="max_uses_exceeded", done=True), final=True),
        SearchItem(search=WebSearch(id="5", query=PAGES[0].url, action="open", done=True), final=True),
        SourcesItem(sources=PAGES, final=True),
        AssistantItem(text="I will look at *the code* first.", seq=5, final=True, interrupted=True),
        ShellItem(command="git status --short", output="M a.py\nM b.py\n", exit_code=0, excluded=True, final=True),
        ShellItem(command="make all", output="one\n", interrupted=True, seconds=2.5, final=True),
        ShellItem(command="seq 20", output="\n".join(map(str, range(1, 21))), exit_code=0, final=True),
        ShellItem(command="seq 30", output="\n".join(map(str, range(1, 31))), exit_code=0, final=True),
        ShellItem(command="make test", output="1\n2\n3\n4\n5\n6\n7\n", running=True, started=97.0),
        NoticeItem(text="The model's list could not be read; the last one is used.", level="warning"),
        NoticeItem(text="No key for anthropic: set ANTHROPIC_API_KEY.", level="error"),
        NoticeItem(text="models\n  small    8k\n  large  200k", kind="command"),
        CompactionItem(running=True, stage="summarising", summary_tokens=1_234, started=88.0),
        CompactionItem(final=True, entry=entry),
        CompactionItem(final=True, aborted=True),
        CompactionItem(final=True, error="the summary was empty"),
    ]
