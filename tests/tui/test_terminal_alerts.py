from __future__ import annotations

import asyncio
import json
import shlex

import pytest

from tenuto.command.outcome import Copy
from tenuto.config.settings import UiSettings
from tenuto.tui.alerts.terminal_alerts import Alerts, title_sequence
from tenuto.tui.effects import Bell, ItemAdded, Title
from tenuto.tui.machine.state import UiState
from tests.tui.full.support import Clock
from tests.tui.test_notify import request

PATIENCE = 20.0
FINISHED = Bell("finished", 60.0)
XTERM = {"TERM": "xterm-256color"}


class Watched:
    """An `Alerts` whose terminal is a list."""

    def __init__(self, environ=XTERM, **ui) -> None:
        self.written: list[str] = []
        self.toasts: list[str] = []
        self.state = UiState(session_id="s1")
        self.clock = Clock()
        self.tasks: set[asyncio.Task[None]] = set()
        self.alerts = Alerts(
            lambda: self.state,
            lambda sequence: self.written.append(sequence) if sequence else None,
            self._spawn,
            lambda text, _style: self.toasts.append(text),
            lambda _spans: None,
            ui=UiSettings(**ui),
            environ=environ,
            clock=self.clock,
        )

    def _spawn(self, work) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def settle(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self.tasks)

    def ring(self, bell: Bell = FINISHED) -> list[str]:
        self.written.clear()
        assert self.alerts.carry_out(bell)
        return self.written


def test_the_title_is_left_to_a_program_that_has_the_terminal():
    watched = Watched()
    watched.alerts.carry_out(Title("before"))
    with watched.alerts.withheld():
        watched.written.clear()
        watched.alerts.carry_out(Title("while it is open"))
        watched.alerts.carry_out(Title("and later"))
        assert watched.written == []
        assert watched.ring(Bell("approval")) != [], "a call goes through"
        watched.written.clear()
    assert watched.written == [title_sequence("and later")]
    with watched.alerts.withheld():
        watched.written.clear()
    assert watched.written == [title_sequence("and later")], "the program may have set its own"


def away(environ=XTERM, **ui) -> Watched:
    watched = Watched(environ, **ui)
    watched.alerts.set_focus(False)
    return watched


@pytest.mark.parametrize(
    ("ui", "written"),
    [
        ({}, ["\x07", "\x1b]777;notify;Tenuto;Finished in 1m\x07"]),
        ({"notifications": True}, ["\x07", "\x1b]777;notify;Tenuto;Finished in 1m\x07"]),
        ({"notifications": "terminal"}, ["\x07", "\x1b]777;notify;Tenuto;Finished in 1m\x07"]),
        ({"notifications": "bell"}, ["\x07"]),
        ({"notifications": "off"}, []),
        ({"notifications": False}, []),
        ({"notification_seconds": 61.0}, []),
    ],
)
def test_the_setting_says_how_the_user_is_called(ui, written):
    assert away(**ui).ring() == written


def test_a_terminal_without_notifications_gets_the_bell_alone():
    assert away({"TERM": "xterm-256color", "WT_SESSION": "x"}).ring() == ["\x07"]
    assert away({"TERM": "linux"}).ring() == ["\x07"]


def test_who_looks_is_left_alone_and_the_focus_counts_from_when_it_is_told():
    watched = Watched()
    assert watched.ring() == []
    assert watched.ring(Bell("approval"))[0] == "\x07", "nobody knows whether the terminal is looked at"
    watched.alerts.set_focus(True)
    watched.clock.now += 60
    assert watched.ring(Bell("approval")) == []


async def test_the_users_command_gets_json_on_its_input_and_there_is_no_bell(tmp_path):
    got = tmp_path / "got"
    watched = away(notification_command=f"cat > {shlex.quote(str(got))}")
    watched.state.status.title = f"'; touch {tmp_path}/hit; $(touch {tmp_path}/hit)"
    watched.state.approvals.requests.append(request())
    assert watched.ring(Bell("approval", 2.0)) == []
    await watched.settle()
    told = json.loads(got.read_text())
    assert told["reason"] == "approval" and told["body"] == "Approval needed: bash npm test"
    assert told["session_id"] == "s1" and not (tmp_path / "hit").exists()


async def test_a_command_that_fails_is_complained_of_once():
    watched = away(notification_command="exit 3")
    for _ in range(2):
        watched.ring()
        await watched.settle()
        watched.clock.now += 60
    assert watched.toasts == ["ui.notification_command ended with exit code 3"]


def test_the_title_is_remembered_set_and_given_back_once():
    watched = Watched()
    watched.alerts.begin()
    assert watched.alerts.carry_out(Title("✳ task — dir"))
    assert watched.written == ["\x1b[22;0t", "\x1b]0;✳ task — dir\x07"]
    assert watched.alerts.owed == "\x1b]0;\x07\x1b[23;0t"
    watched.alerts.end()
    assert watched.written[-1] == "\x1b]0;\x07\x1b[23;0t"
    assert watched.alerts.owed == ""


@pytest.mark.parametrize(("environ", "ui"), [(XTERM, {"title": False}), ({"TERM": "linux"}, {})])
def test_the_title_can_be_left_alone(environ, ui):
    watched = Watched(environ, **ui)
    watched.alerts.begin()
    watched.alerts.carry_out(Title("x"))
    watched.alerts.end()
    assert watched.written == []


def test_gnu_screen_gets_titles_in_ascii():
    watched = Watched({"TERM": "screen.xterm-256color", "STY": "1.pts"})
    watched.alerts.carry_out(Title("✳ Grüne Äste — 项目"))
    assert watched.written[-1] == "\x1b]0;* Grune Aste - ??\x07"


def test_r088_a_title_is_one_sequence_whatever_it_says():
    assert title_sequence("a\x07\x1b]52;c;eA==\x07b\nc\x9b31m") == "\x1b]0;ab c\x07"


def test_progress_is_told_where_it_is_known_and_ends_with_the_program():
    watched = away({"TERM_PROGRAM": "ghostty", "TERM": "xterm-ghostty"}, title=False)
    watched.alerts.follow()
    assert watched.written == []
    watched.state.tasks["t"] = "agent"
    watched.alerts.follow()
    watched.alerts.follow()
    watched.state.approvals.requests.append(request())
    watched.alerts.follow()
    assert watched.written == ["\x1b]9;4;3\x07", "\x1b]9;4;4;100\x07"]
    watched.clock.now += 9
    watched.alerts.follow()
    assert watched.written[2:] == ["\x1b]9;4;4;100\x07"], "told again before the terminal forgets it"
    assert watched.alerts.owed == "\x1b]9;4;0\x07"
    watched.alerts.end()
    assert watched.written[-1] == "\x1b]9;4;0\x07" and watched.alerts.owed == ""


def test_a_failure_stays_on_the_tab_until_somebody_looks():
    watched = away({"TERM_PROGRAM": "ghostty", "TERM": "xterm-ghostty"}, title=False, notifications="off")
    watched.ring(Bell("failed"))
    watched.alerts.follow()
    assert watched.written == ["\x1b]9;4;2;100\x07"]
    watched.alerts.set_focus(True)
    assert watched.written[-1] == "\x1b]9;4;0\x07"


@pytest.mark.parametrize(("ui", "told"), [({}, False), ({"progress": True}, True), ({"progress": "auto"}, False)])
def test_elsewhere_progress_is_told_only_by_hand(ui, told):
    watched = Watched(**ui)
    watched.state.tasks["t"] = "agent"
    watched.alerts.follow()
    assert bool(watched.written) is told


async def test_copying_says_what_it_did(monkeypatch):
    watched = Watched({"TERM": "xterm", "PATH": "/nowhere"})
    assert watched.alerts.carry_out(Copy("hi"))
    await watched.settle()
    assert watched.written == ["\x1b]52;c;aGk=\x07"] and watched.alerts.copied == "hi"
    assert watched.toasts == ["Sent 2 characters to the terminal's clipboard (OSC 52)"]


def test_a_name_in_the_settings_that_means_nothing_is_named():
    watched = Watched(status_items=("mode", "clock"))
    watched.alerts.begin()
    (said,) = watched.toasts
    assert said.startswith("ui.status_items: there is no clock: there are mode, model, ")


def test_other_effects_are_somebody_elses():
    assert not Watched().alerts.carry_out(ItemAdded(1))
