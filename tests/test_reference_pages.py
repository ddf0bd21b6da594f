"""The reference in `docs/` says what the code says; `scripts/manual` writes it."""

from __future__ import annotations

import re

from tenuto.cli.arguments import SUBCOMMANDS
from tenuto.exit_codes import BAD_USAGE, CALLS_REFUSED
from tenuto.frontend.result import EXIT_CODES
from tests.reference_pages import ROOT, exit_code_rows, parsers, renewed


def test_k6_the_reference_is_what_the_code_says():
    old = [path.name for path, text in renewed().items() if path.read_text(encoding="utf-8") != text]
    assert old == [], "scripts/manual writes them anew"


def test_k6_every_subcommand_has_its_options_in_the_reference():
    named = {parser.prog.split()[1] for parser in parsers() if " " in parser.prog}
    assert named == set(SUBCOMMANDS)


def test_k6_every_argument_says_what_it_means():
    silent = [
        (parser.prog, action.dest)
        for parser in parsers()
        for action in parser._actions
        if not action.help and action.dest != "act"
    ]
    assert silent == []


def test_k6_every_event_entry_and_part_says_what_it_is():
    page = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    assert re.findall(r"^### .*\n\n(?=\||#|\Z)", page, re.MULTILINE) == []
    assert "`compaction_end`" in page and "`compaction` entry" in page


def test_k6_every_exit_code_of_a_run_has_its_meaning():
    assert {number for number, _ in exit_code_rows()} == {*EXIT_CODES.values(), BAD_USAGE, CALLS_REFUSED}
