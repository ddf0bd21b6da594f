"""What the site takes from files beside `docs/`: they are pages of it, and stand at no second place.

Loaded by MkDocs (`mkdocs.yml`).
"""

from __future__ import annotations

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


def _with_plain_bars(code: re.Match[str]) -> str:
    """A bar in the code of a table is escaped for GitHub; MkDocs knows it by the code around it."""
    return code[0].replace("\\|", "|")


FILE = re.compile(r"^```(\w+)\n(?:<!-- |// |# )([~\w./-]+\.\w+)(?: -->)?\n", re.MULTILINE)
"""The first line of a block that is a file: its path."""


INLINE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
HYPHENED = re.compile(r"(?<![\w-])(?=[\w-]*-)[\w-]{2,24}(?![\w-])")
"""A word that a browser would break at its hyphen: an option, a key."""


def on_page_content(html: str, **_: Any) -> str:
    """Keep options and keys in a text on one line each."""
    return INLINE.sub(lambda code: HYPHENED.sub(r'<span class="whole">\g<0></span>', code[0]), html)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; their links are written as from the root of the repository."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for other, its_page in PAGES.items():
            text = text.replace(f"]({other}", f"]({its_page}")
        text = re.sub(r'(\]\(|=")docs/', r"\1", text)
        files.append(File.generated(config, page, content=text))
    return files


LOOKED_UP = ("reference/", "decisions.md", "changelog.md", "contributing.md")
"""Pages that name everything: a search finds what explains a thing before them."""


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links out of `docs/` lead to the pages that stand for those files, and write tables as MkDocs reads them."""
    if page.file.src_uri.startswith(LOOKED_UP):
        page.meta["search"] = {"boost": 0.3}
    markdown = re.sub(r"^\|.*$", lambda row: CODE.sub(_with_plain_bars, row[0]), markdown, flags=re.MULTILINE)
    markdown = FILE.sub(r'```\1 title="\2"\n', markdown)  # who copies the block has the file, and nothing more
    for name, its_page in PAGES.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}(?=[)#])", rf"](\1{its_page}", markdown)
    return markdown
