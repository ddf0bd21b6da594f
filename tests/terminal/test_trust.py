"""The dialog of trust in a terminal: on every screen, with text typed over it, and kill -9 in its middle (R-085)."""

from __future__ import annotations

import os
import signal

import pytest

from tenuto.config.consent import Consent
from tests.server import Reply
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.test_raw_bytes import settle

pytestmark = [pytest.mark.terminal, pytest.mark.matrix]
SCREENS = [(), ("--inline",)]
DOWN, DELETE = b"\x1b[B", b"\x1b[3~"
TITLE = "This project brings 3 things"


@pytest.fixture
def hostile(place: Workplace) -> Workplace:
    extensions = place.work / ".tenuto" / "extensions"
    extensions.mkdir(parents=True)
    (place.work / ".tenuto" / "settings.toml").write_text("[tools]\nbash_timeout = 7.0\n[request]\nretries = 2\n")
    (extensions / "mine.py").write_text(f"def setup(tenuto): open({str(place.folder / 'ran')!r}, 'w')\n")
    place.serve(lambda request: Reply(f"You said {said(request)}."))
    return place


def start(place: Workplace, *options: str, **environ: str) -> PseudoTerminal:
    assert place.server is not None
    return PseudoTerminal(place.work, place.home, {**place.server.environ(), **environ}, "--model", MODEL, *options)


@pytest.mark.parametrize("options", SCREENS)
def test_r085_each_item_is_decided_and_kill_9_loses_nothing(hostile: Workplace, options: tuple[str, ...]) -> None:
    terminal = start(hostile, *options)
    try:
        terminal.wait_for(TITLE)
        terminal.write(DOWN * 5)
        terminal.wait_for("def setup(tenuto)")
        assert not (hostile.folder / "ran").exists()
        terminal.write(b"\r")
        terminal.wait_for("trusted")
        terminal.wait_for("✓")
        settle(terminal, 0.5)
        assert (hostile.folder / "ran").exists()
        terminal.write(b"\x1b[A" + DELETE)
        terminal.wait_for("refused")
        os.kill(terminal.pid, signal.SIGKILL)
    finally:
        terminal.close()
    decided = {one.name: one.trusted for one in Consent(hostile.home).all()}
    assert decided == {"mine.py": True, "request.retries": False}
    again = start(hostile, *options)
    try:
        again.wait_for(TITLE)
        assert again.text().count("not decided") == 1
    finally:
        again.close()


@pytest.mark.parametrize("options", SCREENS)
def test_r085_what_is_typed_over_it_is_the_prompt_and_escape_is_not_now(
    hostile: Workplace, options: tuple[str, ...]
) -> None:
    terminal = start(hostile, *options)
    try:
        terminal.wait_for(TITLE)
        terminal.write(b"fix it")
        terminal.wait_until_gone(TITLE)
        terminal.wait_for("fix it")
        terminal.write(b"\r")
        terminal.wait_for("You said fix it.")
        terminal.wait_for(TITLE)
        terminal.write(b"\x1b")
        terminal.wait_until_gone(TITLE)
        settle(terminal, 1.0)
        assert TITLE not in terminal.text()
    finally:
        terminal.close()
    assert Consent(hostile.home).all() == ()
    assert not (hostile.folder / "ran").exists()


def test_r085_plain_lines_ask_by_number_and_a_prompt_goes_past_it(hostile: Workplace) -> None:
    terminal = start(hostile, TERM="dumb")
    try:
        terminal.wait_for("an empty line closes:")
        terminal.write(b"6\r")
        terminal.wait_for("Extensions: mine")
        terminal.write(b"5 refuse\r")
        settle(terminal, 1.0)
        terminal.write(b"\rfix it\r")
        terminal.wait_for("You said fix it.")
    finally:
        terminal.close()
    decided = {one.name: one.trusted for one in Consent(hostile.home).all()}
    assert decided == {"mine.py": True, "request.retries": False}
