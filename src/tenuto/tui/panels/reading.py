"""The search field, and what can be done with the block under the cursor. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.keys.bindings import Bindings, fit_phrases, join_phrases
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.panel import NOTHING, PAD, POINTER, Panel, editor_spans, first_shown
from tenuto.tui.render.line import Line, Span, fit_lines, plain
from tenuto.tui.render.marks import snippet
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.state.item import BlockAction, Item, block_actions, meant_action
from tenuto.tui.state.search import Search
from tenuto.tui.state.state import UiState
from tenuto.tui.state.texts import item_name, item_text, searched_text

PLACES = 8
"""Matches that a screen without a transcript of its own lists around the present one."""
FIELD_ROWS = 2
"""The search field and what the keys do."""
BLOCK_LINES = 4
"""Lines that it shows of a block."""
_WORDS: dict[BlockAction, str] = {
    "fold": "collapse",
    "copy": "copy",
    "edit": "edit",
    "rewind": "rewind",
    "undo": "undo",
    "watch": "read along",
    "transcript": "its transcript",
    "stop": "end it",
    "open": "pager",
}


def search_panel(state: UiState, width: int, line: LineEditor) -> Panel:
    """Return the search field with the number of the present match; keys move between matches above it."""
    search = state.search
    if search is None:
        return NOTHING
    return Panel(fit_lines([search_field(search, width, line), search_keys(search, state.keys, width)], width))


def places_panel(state: UiState, width: int, rows: int, line: LineEditor) -> Panel:
    """Return the search field with a list of the matches around the present one, in at most `rows` rows."""
    search = state.search
    if search is None:
        return NOTHING
    places = _places(state, search, width, max(1, min(PLACES, rows - FIELD_ROWS)))
    keys = search_keys(search, state.keys, width, stays="show it")
    return Panel(fit_lines([search_field(search, width, line), *places, keys], width))


def block_panel(state: UiState, width: int) -> Panel:
    """Return one line: what the keys do with the block that is marked in the transcript."""
    item = state.transcript.get(state.block)
    if item is None:
        return NOTHING
    return Panel(fit_lines([plain(f"{PAD}{_block_keys(item, state.keys, width - 2)}", "faint")], width))


def block_preview(state: UiState, width: int) -> Panel:
    """Return how the block begins, and what the keys do with it."""
    item = state.transcript.get(state.block)
    if item is None:
        return NOTHING
    ids = list(state.transcript.items)
    place = ids.index(item.id) + 1
    head: list[Span] = [(PAD, "text"), (f"{place} of {len(ids)}  ", "accent"), (item_name(item), "bold")]
    rest = [text for text in item_text(item).split("\n")[1:] if text.strip()][:BLOCK_LINES]
    body = [plain(f"{PAD * 2}{truncate(sanitize_line(text), max(1, width - 8))}", "dim") for text in rest]
    return Panel(
        fit_lines([Line(tuple(head)), *body, plain(f"{PAD}{_block_keys(item, state.keys, width - 2)}", "faint")], width)
    )


def search_field(search: Search, width: int, line: LineEditor) -> Line:
    """Return what is looked for, the number of the present match, and what was not looked through."""
    facts = _facts(search)
    room = max(8, width - cell_width(facts) - 14)
    typed: Sequence[Span] = (
        editor_spans(line, room) if search.typing else [(truncate(sanitize_line(search.query), room), "text")]
    )
    if search.typing and not search.query:
        typed = [(" ", "reverse"), ("words in the transcript", "placeholder")]
    style = "dim" if search.current is not None or not search.query else "warning"
    return Line(((PAD, "text"), ("Search", "panel.title"), ("  ", "text"), *typed, ("  ", "text"), (facts, style)))


def _facts(search: Search) -> str:
    """Return how many matches there are, and what they were not looked for in."""
    facts: list[str] = []
    if search.query:
        found = f"{search.number:,} of {search.total:,}" if search.total else "no match"
        facts.append(f"{found} (wrapped)" if search.round and search.total else found)
    if search.looking is not None:
        facts.append("looking through older entries …")
    elif search.entries_left:
        facts.append(f"{search.entries_left:,} older entries are not loaded")
    return " · ".join(facts)


def search_keys(search: Search, keys: Bindings, width: int, *, stays: str = "stay here", prints: str = "") -> Line:
    """Return what the keys do; `stays` is what accepting a match does, `prints` what the key for details does."""
    older = "search older entries" if search.entries_left else ""
    out = keys.phrase("escape", "back" if search.typing and search.current is not None else "close")
    if not search.typing:
        hint = join_phrases(
            keys.phrase("found.up", "up"), keys.phrase("found.down", "down"), keys.phrase("found.copy", "copy"),
            keys.phrase("detail", prints) if prints else "", keys.phrase("found.open", "pager"),
            keys.phrase("found.edit", "new search"), out, "or type on",
        )  # fmt: skip
    elif search.current is None:
        hint = join_phrases(keys.phrase("search.accept", older) if older and search.query else "", out)
    else:
        hint = join_phrases(
            keys.phrase("search.up", "up"),
            keys.phrase("search.down", "down"),
            keys.phrase("search.accept", stays),
            out,
        )
    return plain(f"{PAD}{fit_phrases(hint, out, width - 2)}", "faint")


def _places(state: UiState, search: Search, width: int, rows: int) -> list[Line]:
    """Return a row for each of `rows` matches around the present one: what it stands in, and its line."""
    lines: list[Line] = []
    first = first_shown(search.number - 1, search.total, rows)
    number = 0
    for hit in search.hits:
        item = state.transcript.get(hit.id)
        if item is None or number + hit.count <= first:
            number += hit.count
            continue
        for ordinal in range(max(0, first - number), hit.count):
            if len(lines) == min(rows, search.total):
                return lines
            lines.append(_place(item, search, ordinal, width, selected=number + ordinal + 1 == search.number))
        number += hit.count
    return lines


def _place(item: Item, search: Search, ordinal: int, width: int, *, selected: bool) -> Line:
    name = truncate(item_name(item).partition(" ")[0], 12)
    before, match, after = snippet(searched_text(item), search.query, ordinal, max(10, width - 24))
    style = "choice.selected" if selected else "dim"
    pieces: list[Span] = [(PAD, "text"), (POINTER if selected else PAD, "accent"), (f"{name:<12} ", "faint")]
    pieces += [(sanitize_line(f"x{before}")[1:] + (" " if before[-1:].isspace() else ""), style), (match, "match")]
    pieces.append(((" " if after[:1].isspace() else "") + sanitize_line(after), style))
    return Line(tuple(span for span in pieces if span[0]))


def _block_keys(item: Item, keys: Bindings, width: int) -> str:
    actions = block_actions(item)
    entered = meant_action(item, "enter")
    ids = {action: "block.enter" if action == entered else f"block.{action}" for action in actions}
    phrases = [keys.phrase(ids[action], _word(item, action)) for action in actions]
    out = keys.phrase("escape", "close")
    moves = " ".join(label for label in (keys.label("block.up"), keys.label("block.down")) if label)
    return fit_phrases(join_phrases(f"{moves} moves" if moves else "", *phrases, out), out, width)


def _word(item: Item, action: BlockAction) -> str:
    return "expand" if action == "fold" and item.folded else _WORDS[action]
