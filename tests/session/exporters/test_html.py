"""The HTML export, read back by a parser: what is in it, and what never is."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, HeaderEntry, LabelEntry, TitleEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DiffView, ToolResultMessage, UserMessage
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import ImagePart, TextPart
from tenuto.protocol.usage import Usage
from tenuto.session.exporters import html as page_module
from tenuto.session.exporters.html import write_page
from tests.session.exporters.reading import Page, check_page
from tests.session.exporters.samples import IMAGE, PNG, call, everything, long_session, number, source_of, text

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&colon;alert(1))",
    "<javascript:alert(1)>",
    "[a](data:text/html,<script>alert(1)</script>)",
    "![x](https://example.org/pixel.png)",
    '![x](x" onerror="alert(1))',
    "[x]: javascript:alert(1)\n\n[x]",
    "[a](vbscript:x 'title\" onclick=\"alert(1)')",
    '```"><script>alert(1)</script>\nx\n```',
    "```js onclick=alert(1)\n</code></pre><script>alert(1)</script>\n```",
    "</title><script>alert(1)</script>",
    "</pre></details></article><script>alert(1)</script>",
    "<!-- never closed",
    "]]><![CDATA[<b>",
    "<?php echo 1 ?>",
    "\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x07\x1b[0m\x9b31m",
    "\u202eright to left\u202c \u200f\u2066x\u2069",
    "nul \x00 bell \x07 back \x08 delete \x7f next \x85",
    "lone \ud800 and \udfff",
    "&lt;script&gt; &#60;b&#62; &amp;",
    "&#x202e; &rlm; &#12; &#27;[31m &#xfffe; &#xd800; [x](&#x202e;) ![&rlm;](x)",
    "|a|b|\n|-|:-:|\n|<b>|x' onclick='y|",
    "\ufdd0 \ufffe \U0001ffff",
    "a\r\nb\rc",
)
TEMPLATE = Path(page_module.__file__).parent / "page.html"
POLICY = "Content-Security-Policy"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
pieces = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec=None), max_size=12),
    st.sampled_from("<>&'\"`*_[]()|~#-:=/\\\n "),
)
hostile = st.lists(pieces, max_size=6).map("".join)


def page_of(entries, **more) -> Page:
    return check_page("".join(write_page(source_of(number(entries), **more))))


def test_every_kind_of_entry_gives_a_well_formed_page() -> None:
    page = page_of(everything())
    shown = page.by_id("transcript").text
    for words in ("System prompt, 2 tools", "Told to the model", "Thinking, 1.5s", "Some prose.", "Another way."):
        assert words in shown
    for kind in ("user", "assistant", "shell", "compaction", "extension"):
        assert page.all("article", kind), kind
    assert "+1 −1" in shown and "exit 1" in shown and "failed" in shown
    assert "all of it (1.2 MB) is in outputs/name" in shown


def test_the_lines_of_a_change_have_numbers_and_signs() -> None:
    diff = "@@ -7,2 +7,2 @@\n same\n-total = 1\n+total = 2\n"
    view = DiffView(path="a.py", diff=diff, added=1, removed=1)
    result = ToolResultMessage(call_id="c1", name="edit", parts=text("done"), ui=(view,))
    page = "".join(write_page(source_of(number([HeaderEntry(session_id="s", cwd="/"), result]))))
    (shown,) = Page(page).all("pre", "diff")
    assert shown.text.split("\n")[1:-1] == ["7  same", "8 -total = 1", "8 +total = 2"]
    assert re.findall(r'<span class="(\w+)"><i>', page) == ["context", "removed", "added"]


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else() -> None:
    page = page_of(everything())
    (policy,) = [one.attributes["content"] for one in page.all("meta") if one.attributes.get("http-equiv") == POLICY]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives.pop("default-src") == directives.pop("base-uri") == directives.pop("form-action") == "'none'"
    assert directives.pop("img-src") == "data:"
    for tag in ("style", "script"):
        digest = b64encode(hashlib.sha256(page.all(tag)[0].text.encode()).digest()).decode()
        assert directives.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert directives == {}
    names = [one.tag for one in page.elements]
    assert names.index("meta") < names.index("style")


def test_style_and_script_ask_for_nothing() -> None:
    content = (
        TEMPLATE.read_text(encoding="utf-8").partition("<style>")[2].replace("</style>", "").replace("</script>", "")
    )
    for word in ("http", "url(", "@import", "fetch(", "XMLHttp", "import(", "eval", "innerHTML", "</s", "localStorage"):
        assert word not in content, word


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words_stay_words_wherever_they_stand(word: str) -> None:
    entries = list(everything(f"x{word}x", f"x{word}x".replace("\n", " ")))
    content = "".join(write_page(source_of(number(entries))))
    page = check_page(content)
    assert not FORBIDDEN.search(content)
    assert skeleton(page) == skeleton(page_of(everything("xx", "xx")))
    for element in page.all("a"):
        assert "javascript" not in element.attributes.get("href", "").lower()


@given(hostile, hostile)
def test_no_element_and_no_attribute_comes_from_content(word: str, name: str) -> None:
    content = "".join(write_page(source_of(number(everything(f"x{word}x", f"x{name}x")))))
    assert not FORBIDDEN.search(content)
    assert skeleton(check_page(content)) == PLAIN_SKELETON


def skeleton(page: Page) -> list[tuple[object, ...]]:
    """The elements of a page outside of prose, with everything about them that is not somebody's words."""
    kept = ("class", "id", "href", "open", "src")
    result: list[tuple[object, ...]] = []
    inside = 0
    for element in page.elements:
        depth = len(element.path)
        if inside and depth > inside:
            continue
        inside = depth if "prose" in element.classes else 0
        names = sorted(element.attributes)
        result.append((element.tag, names, [element.attributes.get(name) for name in kept]))
    return result


PLAIN_SKELETON = skeleton(page_of(everything("xx", "xx")))


def test_the_same_words_in_prose_can_be_read_again() -> None:
    page = page_of([UserMessage(parts=text("hi")), AssistantMessage(parts=text("<b>bold</b> & `<i>`"))])
    assert "<b>bold</b> & <i>" in page.all("div", "prose")[0].text
    assert "b" not in [one.tag for one in page.elements if "prose" in str(one.path)]


def test_links_are_live_only_for_addresses_that_open_a_page() -> None:
    words = '[a](https://example.org/?q="1") [b](/etc/passwd) <mailto:a@example.org> [c](ftp://x) [d](#e1)'
    page = page_of([AssistantMessage(parts=text(words))])
    prose = [one for one in page.all("a") if "p" in one.path]
    live = [one.attributes["href"] for one in prose if "href" in one.attributes]
    assert live == ["https://example.org/?q=%221%22", "mailto:a@example.org"]
    assert [one.attributes["title"] for one in prose if "dead" in one.classes] == ["/etc/passwd", "ftp://x", "#e1"]
    assert all("noopener" in one.attributes["rel"] for one in prose if "href" in one.attributes)


def test_prose_keeps_its_form() -> None:
    words = "# One\n\n- a\n- b\n\n3. c\n\n> q\n\n|h|r|\n|-|-:|\n|1|2|\n\n~~s~~ *e* **b**\n\n---\n\n"
    words += "```python\nx = 'y'\n```\n\n    raw"
    page = page_of([AssistantMessage(parts=text(words))])
    tags = {one.tag for one in page.elements if "article" in one.path}
    assert {"h3", "ul", "ol", "li", "blockquote", "table", "td", "s", "em", "strong", "hr", "pre", "code"} <= tags
    assert [one.attributes["start"] for one in page.all("ol") if "start" in one.attributes] == ["3"]
    assert [one.text for one in page.all("td", "right")] == ["2"]
    assert [one.text for one in page.all("span", "code-string")] == ["'y'"]


def test_a_text_that_is_no_prose_is_shown_as_it_stands() -> None:
    deep, brackets, long = ">" * 50_000, "[" * 50_000, "word " * 60_000
    page = page_of([AssistantMessage(parts=text(words)) for words in (deep, brackets, long)])
    shown = page.by_id("transcript").text
    assert brackets in shown and long.strip() in shown


def test_images_are_in_the_page_or_named() -> None:
    parts = (
        ImagePart(sha256=IMAGE, media_type="image/png", name="here.png", size=len(PNG)),
        ImagePart(sha256="cd" * 32, media_type="image/png", name="gone.png"),
        ImagePart(sha256=IMAGE, media_type="image/svg+xml", name="vector.svg"),
        ImagePart(sha256=IMAGE, media_type='image/png" onerror="x', name="quoted"),
        ImagePart(sha256=IMAGE, media_type="image/png", name="large.png", size=5_000_001),
    )
    page = page_of([UserMessage(parts=parts)])
    (image,) = page.all("img")
    assert image.attributes["src"] == f"data:image/png;base64,{b64encode(PNG).decode()}"
    assert "here.png" in image.attributes["alt"]
    named = [one.text for one in page.all("p", "note")]
    assert [name in words for name, words in zip(["gone.png", "vector.svg", "quoted", "large.png"], named, strict=True)]
    assert "no longer there" in named[0] and "too large" in named[3]


def test_an_image_that_is_larger_than_it_says_is_named_too() -> None:
    part = ImagePart(sha256=IMAGE, media_type="image/png", name="liar.png", size=10)
    page = page_of([UserMessage(parts=(part,))], loader=lambda _: b"x" * 5_000_001)
    assert not page.all("img")
    assert "too large" in page.by_id("transcript").text


def test_the_transcript_is_the_active_path_and_the_tree_leads_to_every_branch() -> None:
    page = page_of(
        [
            HeaderEntry(session_id="s", cwd="/"),
            UserMessage(parts=text("first")),  # 1
            AssistantMessage(parts=text("one")),  # 2
            UserMessage(parts=text("left behind")),  # 3
            AssistantMessage(parts=text("said in the branch")),  # 4
            BranchEntry(parent=2),  # 5
            UserMessage(parts=text("second way")),  # 6
            BranchEntry(parent=4),  # 7
            UserMessage(parts=text("branch of the branch")),  # 8
            BranchEntry(parent=6),  # 9
            AssistantMessage(parts=text("the end")),  # 10
            LabelEntry(target=10, text="good"),
            BranchEntry(parent=10),
            TitleEntry(title="T"),
        ]
    )
    transcript = page.by_id("transcript").text
    assert [word in transcript for word in ("first", "one", "second way", "the end")] == [True] * 4
    assert "left behind" not in transcript and "branch of the branch" not in transcript
    assert "said in the branch" in page.by_id("b1").text
    assert "branch of the branch" in page.by_id("b2").text
    (tree,) = page.all("nav")
    links = [one.attributes["href"] for one in page.all("a") if "nav" in one.path]
    assert links == ["#e1", "#b1", "#e6", "#e10", "#e3", "#b2", "#e8"], "the path, the branch, the branch of that"
    assert "good" in tree.text


def test_hundreds_of_branches_of_branches_do_not_nest_without_end() -> None:
    entries = [HeaderEntry(session_id="s", cwd="/"), UserMessage(parts=text("root"))]
    for turn in range(500):
        entries += [UserMessage(parts=text(f"turn {turn}")), BranchEntry(parent=2 + 2 * turn - (2 if turn else 0))]
        entries += []
    page = page_of([*entries, UserMessage(parts=text("leaf"))])
    assert max(len(one.path) for one in page.elements) < 60
    assert (
        len({one.attributes["href"] for one in page.all("a") if "nav" in one.path and one.attributes["href"][1] == "e"})
        == 502
    )


def test_a_compaction_says_what_it_did_and_has_its_summary_folded() -> None:
    page = page_of(everything())
    (mark,) = page.all("article", "compaction")
    for words in ("182k → ~24k tokens", "threshold", "nearly full", "· name ·", "12s", "$0.012", "focus: word"):
        assert words in mark.text
    assert "undone" in mark.classes and "taken back" in mark.text
    summary = [one for one in page.elements if one.tag == "div" and "prose" in one.classes and "article" in one.path]
    assert any(one.path[-1] == "details" and one.text.strip() == "word" for one in summary)
    tree = [one for one in page.all("a") if "nav" in one.path and one.text.startswith("Compaction")]
    assert [one.text for one in tree] == ["Compaction: 182k → ~24k tokens, name"]


def test_a_compaction_that_only_hides_results_is_one_too() -> None:
    hidden = ViewEditEntry(
        edits=(ViewEdit(target=1, kind="hidden"),),
        reason="threshold",
        rung="hide",
        tokens_before=90_000,
        tokens_after=40_000,
        duration=2.5,
    )
    usage = Usage(input=90_000)
    page = page_of(
        [UserMessage(parts=text("hi")), AssistantMessage(parts=(), usage=usage), hidden, UndoEntry(target=3)]
    )
    (mark,) = page.all("article", "compaction")
    for words in ("90k → ~40k tokens", "threshold", "old results hidden", "2.5s", "results are hidden", "taken back"):
        assert words in mark.text
    assert [one.text for one in page.all("a") if "nav" in one.path] == [
        "hi",
        "Compaction: 90k → ~40k tokens, old results hidden",
    ]


@pytest.mark.parametrize("reason", get_args(CompactionReason))
def test_every_reason_to_compact_has_its_words(reason: CompactionReason) -> None:
    page = page_of([CompactionEntry(summary="s", first_kept_index=1, reason=reason)])
    assert re.search(rf"{reason} \(\w[\w ]+\)", page.all("article", "compaction")[0].text)


def test_a_compaction_that_kept_nothing_that_is_shown_has_no_dead_link() -> None:
    page = page_of([TitleEntry(title="T"), CompactionEntry(summary="s", first_kept_index=1)])
    assert "Kept word for word from #1 on" in page.all("article", "compaction")[0].text


def test_the_sums_of_each_model_are_in_a_table() -> None:
    def request(model: str) -> AssistantMessage:
        return AssistantMessage(
            parts=text("a"), model=model, usage=Usage(input=100, cache_read=900, output=7, cost=0.5)
        )

    page = page_of([request("m/n"), request("m/n"), request("a/b"), AssistantMessage(parts=text("no numbers"))])
    cells = [one.text for one in page.all("td")]
    rows = [cells[at : at + 8] for at in range(0, len(cells), 8)]
    assert rows[0] == ["", "calls", "input", "from cache", "to cache", "output", "reasoning", "cost"]
    assert rows[1] == ["m/n", "2", "200", "1,800", "0", "14", "0", "$1.00"]
    assert [row[0] for row in rows[2:]] == ["a/b", "all"]
    assert not page_of([UserMessage(parts=text("hi"))]).all("table")


def test_a_long_session_is_written_piece_by_piece() -> None:
    chunks = list(write_page(source_of(long_session(4_000))))
    assert len(chunks) > 2_000
    assert max(map(len, chunks)) < 200_000 < sum(map(len, chunks)) / 20, "no part of it holds all of it"
    assert "".join(chunks).count("<article") > 2_000


def test_tool_blocks_and_long_outputs_are_folded_and_whole() -> None:
    output = "\n".join(f"row {line}" for line in range(5_000))
    page = page_of(
        [
            AssistantMessage(parts=(call("bash", "c", command="seq"),)),
            ToolResultMessage(call_id="c", name="bash", parts=text(output)),
        ]
    )
    (tool,) = page.all("details", "tool")
    assert "open" not in tool.attributes
    assert "row 4999" in tool.text
    (block,) = [one for one in page.all("pre", "output") if "row 7" in one.text]
    assert block.path[-2:] == ("details", "details")
    assert block.text.strip() == output


def test_results_stand_with_their_calls_also_when_ids_repeat() -> None:
    def step(words: str) -> list:
        return [
            AssistantMessage(parts=(call("bash", "same", command=words), call("bash", "same", command=words + "2"))),
            ToolResultMessage(call_id="same", name="bash", parts=text(words)),
            ToolResultMessage(call_id="same", name="bash", parts=text(words + "2")),
        ]

    page = page_of([*step("alpha"), *step("beta"), ToolResultMessage(call_id="none", name="lost", parts=text("gamma"))])
    tools = page.all("details", "tool")
    assert [("alpha2" in tool.text, "beta2" in tool.text) for tool in tools[:4]] == [
        (False, False), (True, False), (False, False), (False, True),
    ]  # fmt: skip
    assert "without its call" in tools[4].text
    assert [tool.attributes["id"] for tool in tools] == ["e2", "e3", "e5", "e6", "e7"]


def test_output_that_was_overwritten_on_the_terminal_is_shown_as_it_ended() -> None:
    words = "10 %\r50 %\r100 %\n\x1b[32mdone\x1b[0m"
    page = page_of([ToolResultMessage(call_id="c", name="bash", parts=text(words))])
    assert page.all("pre", "output")[0].text.strip() == "100 %\ndone"
    page = page_of([UserMessage(parts=text("a\rb\r\nc"))])
    assert page.all("pre", "said")[0].text.strip() == "a\nb\nc"


def test_damage_is_told_and_odd_numbers_do_no_harm() -> None:
    from tenuto.session.log.log import Damage

    damage = tuple(Damage(line=line, size=3, reason="<b>") for line in range(1, 60))
    usage = Usage(input=-5, cache_read=2**60, output=-1, cost=-3.0)
    entries = number([UserMessage(parts=(TextPart(text=""),)), AssistantMessage(parts=(), usage=usage, duration=1e300)])
    entries += [UserMessage(parts=text("again"), seq=1, ts=1e300), UserMessage(parts=text("negative"), seq=3, ts=-5.0)]
    page = check_page("".join(write_page(source_of(entries, damage=damage))))
    about = page.all("details", "aside")[0].text
    assert "59" in about and "line 1 (3 bytes): <b>" in about and "and 39 more" in about


def test_an_empty_log_is_a_page() -> None:
    assert "Session gone" in check_page("".join(write_page(source_of([], session_id="gone")))).all("h1")[0].text


ADDRESSES = st.sampled_from(["https://example.org", "http://a.example/b?c=d&e=1#f", "https://example.org/x_(y)"])


@given(ADDRESSES, st.sampled_from(["{}", "see {}.", "({})", "{}, or", "- {}!", "| a | {} |"]))
def test_f13_a_bare_address_is_a_link_without_what_stands_around_it(address: str, around: str) -> None:
    """daily-user.md F13."""
    page = page_of([AssistantMessage(parts=text(around.format(address)))])
    links = [(one.attributes.get("href", ""), one.text) for one in page.all("a")]
    live = [(target, shown) for target, shown in links if target.lower().startswith("http")]
    assert live == [(address, address)]


def test_f13_an_address_in_a_link_or_in_code_is_no_second_link() -> None:
    words = "[https://a.example](https://b.example) `https://c.example` <https://d.example>"
    page = page_of([AssistantMessage(parts=text(words))])
    live = [one.attributes["href"] for one in page.all("a") if one.attributes.get("href", "").startswith("http")]
    assert live == ["https://b.example", "https://d.example"]


def test_f13_cells_of_a_table_do_not_break_words() -> None:
    """The page breaks long words anywhere, which in a cell makes columns of single letters."""
    style = TEMPLATE.read_text(encoding="utf-8")
    assert "overflow-wrap: anywhere" in style
    assert re.search(r"\nth, td \{[^}]* overflow-wrap: (break-word|normal);", style)
