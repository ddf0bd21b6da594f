"""What the site takes from files beside `docs/`: they are pages of it, and stand at no second place.

Loaded by MkDocs (`mkdocs.yml`).
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "overview.md",
    "AGENTS.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.txt",
}
"""Files of the repository's root, and what they are called on the site."""

CODE = re.compile(r"`[^`]+`")
PICTURE = re.compile(r"^!\[[^\]]*\]\((pictures/[\w-]+\.svg)(?:#[\w-]+)?\)$", re.MULTILINE)
FILE_NAME = re.compile(r"(?<!!)\[([a-z-]+)\.md\](?=\(\1\.md[)#])")
"""A link that is called by its file: right in the repository, and no name for a page."""
SHORT_CODE = re.compile(r"<code>(?=[^<\n]{1,20}</code>)")
"""Code in a line that stays in one piece: browsers break `--mode` behind its hyphens."""


def _with_plain_bars(code: re.Match[str]) -> str:
    """A bar in the code of a table is escaped for GitHub; MkDocs knows it by the code around it."""
    return code[0].replace("\\|", "|")


FILE = re.compile(r"^```(\w+)\n(?:<!-- |// |# )([~\w./-]+\.\w+)(?: -->)?\n", re.MULTILINE)
"""The first line of a block that is a file: its path."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; their links are written as from the root of the repository."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for other, its_page in PAGES.items():
            text = text.replace(f"]({other}", f"]({its_page}")
        text = re.sub(r'(\]\(|=")docs/', r"\1", text)
        files.append(File.generated(config, page, content=text))
    return files


def _by_title(link: re.Match[str]) -> str:
    """Return the words of a link: its page's title, up to a colon."""
    title = (ROOT / "docs" / f"{link[1]}.md").read_text(encoding="utf-8").lstrip().partition("\n")[0]
    return f"[{title.removeprefix('# ').partition(':')[0]}]"


LOOKED_UP = ("reference/", "decisions.md", "changelog.md", "contributing.md")
"""Pages that name everything: a search finds what explains a thing before them."""


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links out of `docs/` lead to the pages that stand for those files, and write tables as MkDocs reads them.

    A picture of the screen leads to itself: it is there in its full size, whatever room the page has.
    """
    if page.file.src_uri.startswith(LOOKED_UP):
        page.meta["search"] = {"boost": 0.3}
    markdown = re.sub(r"^\|.*$", lambda row: CODE.sub(_with_plain_bars, row[0]), markdown, flags=re.MULTILINE)
    markdown = PICTURE.sub(r"[\g<0>](\1)", markdown)
    markdown = FILE_NAME.sub(_by_title, markdown)
    markdown = FILE.sub(r'```\1 title="\2"\n', markdown)  # who copies the block has the file, and nothing more
    for name, its_page in PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}(?=[)#])", rf"](\1{its_page}", markdown)
    return markdown


TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
CELL = re.compile(r"<td([^>]*)>(.*?)</td>", re.DOTALL)
STACKED = range(3, 6)
TEXT = 40
"""Tables of so many columns whose last one has texts of more characters stand as blocks on a narrow screen, where that
column would be out of sight.
"""


def _stacked(table: re.Match[str]) -> str:
    """Let each cell of a wide table know the head of its column (`site.css` writes it before the cell)."""
    heads = [_plain(head) for head in re.findall(r"<th(?:\s[^>]*)?>(.*?)</th>", table[0], re.DOTALL)]
    last = [_plain(cell[2]) for cell in CELL.finditer(table[0])][len(heads) - 1 :: max(len(heads), 1)]
    if len(heads) not in STACKED or max(map(len, last), default=0) <= TEXT:
        return table[0]
    places = itertools.cycle(heads)
    return CELL.sub(lambda cell: f'<td data-head="{next(places)}"{cell[1]}>{cell[2]}</td>', table[0])


def _plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace('"', "&quot;")


def on_page_content(html: str, **_: Any) -> str:
    """Keep short code in one piece, and wide tables readable on a narrow screen."""
    return TABLE.sub(_stacked, SHORT_CODE.sub('<code class="short">', html))
