"""One long story: the same items in the same order on both screens, after a resume, and in the events as JSON lines.

The story has what a session has: thinking, calls side by side, one that fails, an approval, the user's own command, a
queued prompt, an interrupt, an error of the provider, a compaction.
"""

from __future__ import annotations

import re
from contextlib import ExitStack

import pytest

from tenuto.tui.inline.printer import Printer
from tenuto.tui.render.options import RenderOptions
from tests.server import Call, Hang, HttpError, Reply, Request
from tests.server.reply import AnyReply
from tests.terminal.conftest import Workplace, said
from tests.terminal.screen import Screen
from tests.terminal.test_compaction import SUMMARY, is_summary_request
from tests.tui.inline.test_same_items import items_of_json

pytestmark = pytest.mark.terminal
COLUMNS, ROWS = 100, 120
COMPARED = 60
"""Characters of a row: the scroll bar takes a column of the full screen, so long rows are cut elsewhere there."""
SLOW = " ".join(f"word{number}" for number in range(40))
HINT = re.compile(r"^.. *tmux keeps .*\n(?:  +\S.*\n)*", re.MULTILINE)
"""Said once on a terminal, when the program has asked the tmux around it."""


def story(request: Request) -> AnyReply:
    if is_summary_request(request):
        return Reply(SUMMARY)
    text = said(request).rpartition("\n")[2]
    results = sum(item.kind == "result" for item in request.turn)
    match text:
        case "work" if not results:
            calls = [Call("read", {"path": "shop/price.py"}), Call("read", {"path": "nowhere.py"})]
            return Reply("I look.", thinking="Where is it?", tool_calls=calls)
        case "work" if results == 2:
            return Reply(tool_calls=[Call("bash", {"command": "touch made && echo made it"})])
        case "count" if not results:
            return Reply(
                tool_calls=[Call("bash", {"command": "python3 -c 'print(*range(10000, 14001), sep=chr(10))'"})]
            )
        case "slow":
            return Reply(SLOW, delay_per_event=0.1)
        case "hang":
            return Hang()
        case "refused":
            return HttpError(400, "this is not acceptable")
        case _:
            return Reply(f"That was **{text}**.")


def rows_of(text: str) -> list[str]:
    """The rows that say something, without what time, room and the scroll bar change."""
    rows = [row.rstrip("▐ ") for row in HINT.sub("", text).split("\n")]
    begin = next(number for number, row in enumerate(rows) if row.startswith("▌ work"))
    end = max(number for number, row in enumerate(rows) if "That was last." in row)
    return [re.sub(r"[0-9.]+s\b", "", row.partition(" · ")[0])[:COMPARED] for row in rows[begin : end + 1] if row]


def rows_of_events(place: Workplace, prompt: str) -> list[str]:
    """Go on by `-p --json` and return the rows that its events make, with those of what was before."""
    printer = Printer(lambda: RenderOptions(expand_key="Ctrl+O"))
    for item in items_of_json(place, "--continue", "--mode", "ask", prompt).transcript.ordered():
        printer.add(item)
    return rows_of("\n".join(line.text for line in printer.take(COLUMNS)))


def send(screen: Screen, text: str) -> None:
    screen.type(text)
    screen.wait_for(f"❯ {text}")
    screen.keys("Enter")


def say(screen: Screen, text: str) -> None:
    send(screen, text)
    screen.wait_settled(f"That was {text}.")


def tell(screen: Screen) -> None:
    send(screen, "work")
    screen.answer("Allow? Bash", "y")
    screen.wait_settled("That was work.")
    send(screen, "!echo from the shell")
    screen.wait_settled("$ echo from the shell")
    send(screen, "count")
    screen.answer("Allow? Bash", "y")
    screen.wait_settled("That was count.")
    send(screen, "slow")
    screen.wait_for("word5 ")
    send(screen, "next")
    screen.wait_for("queued")
    screen.wait_settled("word39", "That was next.")
    send(screen, "hang")
    screen.wait_for("esc to interrupt")
    screen.keys("Escape")
    screen.wait_settled()
    send(screen, "refused")
    screen.wait_settled("not acceptable")
    send(screen, "/compact")
    screen.wait_settled("Compacted ·")


@pytest.fixture
def places(tmp_path, tmux):
    with ExitStack() as stack:
        made: list[Workplace] = []
        for name in ("full", "inline"):
            (tmp_path / name).mkdir()
            made.append(Workplace(tmp_path / name, stack))
            made[-1].serve(story, window=40_000)
        yield made


def test_full_inline_resumed_and_json_give_the_same_items_in_the_same_order(places) -> None:
    full = places[0].start("--mode", "ask", columns=COLUMNS, rows=ROWS)
    tell(full)
    say(full, "last")
    shown = rows_of(full.capture())
    inline = places[1].start("--inline", "--mode", "ask", columns=COLUMNS, rows=ROWS)
    tell(inline)
    say(inline, "last")
    assert rows_of(inline.whole()) == shown
    inline.close()
    resumed = places[1].start("--inline", "--continue", "--mode", "ask", columns=COLUMNS, rows=ROWS)
    resumed.wait_settled("That was last.")
    assert rows_of(resumed.whole()) == shown
    resumed.close()
    assert rows_of_events(places[1], "more")[: len(shown)] == shown
