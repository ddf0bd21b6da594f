"""On a narrow screen a hint on keys says less, but always how to get out."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import AssistantMessageEvent
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import TextPart
from tenuto.tui.keys.bindings import fit_phrases
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.lists import queue_panel
from tenuto.tui.panels.reading import block_panel, search_panel
from tenuto.tui.state.intents import AcceptSearch, OpenSearch, SearchChanged
from tests.tui.full.fake_runtime import queue_of
from tests.tui.machine.driving import SESSION, Driver, user


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (40, "one · two · Esc out · more"),
        (25, "one · two · Esc out"),
        (16, "one · Esc out"),
        (9, "Esc out"),
        (3, "Esc out"),
    ],
)
def test_the_last_phrases_go_first_and_the_way_out_never(width: int, expected: str) -> None:
    assert fit_phrases("one · two · Esc out · more", "Esc out", width) == expected


@pytest.mark.parametrize("width", [30, 40, 80, 120])
def test_block_search_and_queue_keep_esc_on_every_width(width: int) -> None:
    driver = Driver()
    message = AssistantMessage(
        parts=(TextPart(text="The parser is in `parse.py`."),), model="m", stop_reason="end_turn", seq=2
    )
    driver.feed(user(1, "where is the parser?"), AssistantMessageEvent(session_id=SESSION, message=message))
    driver.feed(queue_of("and charge the orders again"))
    driver.state.block = next(iter(driver.state.transcript.items))
    panels = [block_panel(driver.state, width), queue_panel(driver.state, width)]
    driver.state.block = 0
    driver.feed(OpenSearch())
    panels.append(search_panel(driver.state, width, LineEditor()))
    driver.feed(SearchChanged("parser"))
    panels.append(search_panel(driver.state, width, LineEditor("parser", 6)))
    driver.feed(AcceptSearch())
    panels.append(search_panel(driver.state, width, LineEditor("parser", 6)))
    hints = [panel.lines[-1] for panel in panels if panel.lines]
    assert len(hints) >= 4
    for hint in hints:
        assert hint.width <= width
        assert "Esc" in hint.text or "and charge" in hint.text, "a queue that is not looked at needs no way out"
        assert not hint.text.endswith("…")
