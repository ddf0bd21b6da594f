"""The tables of `docs/configuration.md`, made from the settings. Run by `scripts/manual`."""

from __future__ import annotations

import re
from pathlib import Path

from tenuto.config.manual import parts, settings_in

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
TABLE = re.compile(r"^\| key \| type \| default \| meaning \|\n(?:\|.*\n)+", re.MULTILINE)


def heading_of(name: str) -> str:
    return f"`[{name}]`" if name else "Top level"


def table_of(section) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for one in settings_in(section):
        meaning = one.meaning.replace("|", "\\|")
        lines.append(f"| `{one.name}` | {one.kind} | {one.default} | {meaning} |")
    return "\n".join(lines) + "\n"


def with_tables(text: str) -> str:
    """The document with each table as the settings make it. A part that is not there is an error."""
    for name, section in parts():
        if not list(settings_in(section)):
            continue
        found = re.search(rf"^## {re.escape(heading_of(name))}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, f"docs/configuration.md has no part “{heading_of(name)}”"
        part = TABLE.sub(lambda _, section=section: table_of(section), found[0], count=1)
        text = text[: found.start()] + part + text[found.end() :]
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
