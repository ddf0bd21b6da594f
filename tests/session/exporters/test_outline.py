"""The outline is the session's own tree, computed at once."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.describe import Place, is_shown
from tenuto.session.exporters.html import write_page
from tenuto.session.exporters.markdown import write_markdown
from tenuto.session.exporters.source import ROOT, read_outline
from tenuto.session.log.history import History
from tenuto.session.log.log import UNKNOWN_END
from tenuto.session.view.tree import Tree
from tests.session.build import RandomHistory, user
from tests.session.exporters.reading import check_page
from tests.session.exporters.samples import source_of


def random_entries(seed: int, length: int) -> list[HistoryEvent]:
    """A history with many branches, some lines lost, some seqs twice."""
    source = random.Random(seed)
    maker = RandomHistory(source)
    entries: list[HistoryEvent] = [HeaderEntry(session_id="s", cwd="/")]
    seq = 0
    for _ in range(length):
        seq += source.choice([1, 1, 1, 1, 2])
        made = BranchEntry(parent=source.randrange(seq + 2)) if source.random() < 0.2 else maker.next(entries)
        if source.random() > 0.05:
            entries.append(msgspec.structs.replace(made, seq=seq if source.random() > 0.03 else max(seq - 1, 1)))
    return entries


@given(st.integers(0, 10**9), st.integers(0, 60))
def test_the_path_is_the_trees_and_nothing_is_lost(seed: int, length: int) -> None:
    entries = random_entries(seed, length)
    history = History(Path("nowhere"), [])
    tree = Tree(history)
    for entry in entries:
        history.append(entry, UNKNOWN_END)
        tree.follow(entry)
    outline = read_outline(entries)
    assert [id(entry) for entry in outline.path] == [id(entry) for entry in tree.path]
    shown = [
        position
        for piece in outline.pieces
        for position in piece.positions
        if is_shown(entries[position], Place.EXPORT)
    ]
    assert sorted(shown) == [position for position, entry in enumerate(entries) if is_shown(entry, Place.EXPORT)]
    for number, piece in enumerate(outline.branches, 1):
        assert piece.parent < number
        assert piece.after < piece.positions[0]
        assert (piece.parent == ROOT) <= (piece.after == ROOT)


def test_a_branch_to_the_root_and_one_at_the_very_end() -> None:
    entries: list[HistoryEvent] = [user(seq=1), user(seq=2), BranchEntry(parent=0, seq=3), user(seq=4)]
    outline = read_outline(entries)
    assert [entry.seq for entry in outline.path] == [4]
    assert [[entry.seq for entry in piece.entries] for piece in outline.branches] == [[1, 2]]
    outline = read_outline([*entries, BranchEntry(parent=1, seq=5)])
    assert [entry.seq for entry in outline.path] == [1]
    assert [[entry.seq for entry in piece.entries] for piece in outline.branches] == [[2], [4]]
    assert read_outline([]).path == ()


@given(st.integers(0, 10**9), st.integers(0, 60))
def test_any_history_can_be_exported_and_each_link_in_it_leads_somewhere(seed: int, length: int) -> None:
    source = source_of(random_entries(seed, length))
    page = check_page("".join(write_page(source)))
    whole = page.all("main")[0].text
    document = "".join(write_markdown(source))
    for entry in source.entries:
        if isinstance(entry, UserMessage):
            assert text_of(entry.parts) in whole
            assert text_of(entry.parts) in document
