"""What reaches the user beyond the screen: title, progress, calls, the clipboard, the user's own commands."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.settings import UiSettings
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.alerts import (
    Alerts,
    CallFilter,
    Notification,
    StatusCommand,
    describe_bell,
    first_line,
    notification_sequence,
    session_facts,
    title_sequence,
)
from tenuto.tui.state.effects import Bell
from tenuto.tui.state.item import AssistantItem
from tenuto.tui.state.state import UiState
from tests.tui.full.support import Clock

PATIENCE = 120.0
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
        self.alerts.call(bell)
        return self.written


def test_the_title_is_left_to_a_program_that_has_the_terminal():
    watched = Watched()
    watched.alerts.set_title("before")
    with watched.alerts.withheld():
        watched.written.clear()
        watched.alerts.set_title("while it is open")
        watched.alerts.set_title("and later")
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
    watched.alerts.set_title("✳ task — dir")
    assert watched.written == ["\x1b[22;0t", "\x1b]0;✳ task — dir\x07"]
    assert watched.alerts.owed == "\x1b]0;\x07\x1b[23;0t"
    watched.alerts.end()
    assert watched.written[-1] == "\x1b]0;\x07\x1b[23;0t"
    assert watched.alerts.owed == ""


@pytest.mark.parametrize(("environ", "ui"), [(XTERM, {"title": False}), ({"TERM": "linux"}, {})])
def test_the_title_can_be_left_alone(environ, ui):
    watched = Watched(environ, **ui)
    watched.alerts.begin()
    watched.alerts.set_title("x")
    watched.alerts.end()
    assert watched.written == []


def test_gnu_screen_gets_titles_in_ascii():
    watched = Watched({"TERM": "screen.xterm-256color", "STY": "1.pts"})
    watched.alerts.set_title("✳ Grüne Äste — 项目")
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
    watched.alerts.copy("hi")
    await watched.settle()
    assert watched.written == ["\x1b]52;c;aGk=\x07"] and watched.alerts.copied == "hi"
    assert watched.toasts == ["Sent 2 characters to the terminal's clipboard (OSC 52)"]


def test_a_name_in_the_settings_that_means_nothing_is_named():
    watched = Watched(status_items=("mode", "clock"))
    watched.alerts.begin()
    (said,) = watched.toasts
    assert said.startswith("ui.status_items: there is no clock: there are editing, mode, model, ")


# --- whether and how the user is called ---


FORMS = ("osc9", "osc99", "osc777")


def request(**given_fields):
    fields = {"request_id": "r", "call_id": "c", "tool": "bash", "summary": "npm test", "detail": "npm test"}
    return ApprovalRequestedEvent(session_id="s", **{**fields, **given_fields})


def test_who_looks_is_not_called_and_who_may_not_look_is_only_asked():
    calls = CallFilter(after=10)
    calls.has_focus = True
    assert not calls.wanted(Bell("approval"), 0.0)
    calls.has_focus = None
    assert not calls.wanted(Bell("finished", 60.0), 0.0)
    assert not calls.wanted(Bell("failed"), 0.0)
    assert calls.wanted(Bell("approval"), 0.0)


def test_a_short_run_is_no_reason_but_a_short_failure_is():
    calls = CallFilter(after=10)
    calls.has_focus = False
    assert not calls.wanted(Bell("finished", 9.9), 0.0)
    assert calls.wanted(Bell("finished", 10.0), 0.0)
    assert calls.wanted(Bell("failed", 0.1), 1.0), "more urgent than what was said a second ago"


def test_several_at_once_are_one_call_and_the_more_urgent_comes_through():
    calls = CallFilter(after=0)
    calls.has_focus = False
    assert calls.wanted(Bell("finished"), 0.0)
    assert calls.wanted(Bell("approval"), 0.5)
    assert not calls.wanted(Bell("approval"), 1.0)
    assert not calls.wanted(Bell("compaction"), 1.0)
    assert calls.wanted(Bell("compaction"), 4.0)


def test_it_says_where_and_what():
    state = UiState()
    state.status.cwd, state.status.title = "/home/me/code/shop", ""
    state.approvals.requests.append(request())
    assert describe_bell(Bell("approval"), state) == Notification("Tenuto: shop", "Approval needed: bash npm test")
    state.status.title = "Fix the cart"
    state.transcript.items[1] = AssistantItem(id=1, text="## Done\n\nAll tests pass.")
    told = describe_bell(Bell("finished", 75.0), state)
    assert told == Notification("Tenuto: Fix the cart", "Finished in 1m 15s: Done")


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(st.sampled_from("ab;\x07\x1b\\]\x9c\x9d\n\u202e字"), max_size=40))
def test_r088_a_notification_is_one_sequence_whatever_it_says(form, text):
    state = UiState()
    state.status.title = text
    state.approvals.requests.append(request(summary=text))
    sequence = notification_sequence(describe_bell(Bell("approval"), state), form)
    inner = r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e]*"
    wanted = {
        "osc9": rf"\x1b\]9;{inner}\x07",
        "osc777": r"\x1b\]777;notify;[^;]*;[^;]*\x07",
        "osc99": rf"\x1b\]99;i=tenuto:d=0:o=unfocused;{inner}\x1b\\\x1b\]99;i=tenuto:p=body;{inner}\x1b\\",
    }[form]
    assert re.fullmatch(wanted, sequence), sequence
    ours = 4 if form == "osc99" else 2
    assert len(re.findall(r"[\x00-\x1f\x7f-\x9f]", sequence)) == ours


def test_where_there_is_no_form_there_is_no_sequence():
    assert notification_sequence(Notification("a", "b"), "") == ""


# --- the status command ---


class WatchedCommand:
    """A status command that runs for real, and what came of it."""

    def __init__(self, command: str, interval: float = 0.0) -> None:
        self.shown: list[str] = []
        self.problems: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.state = UiState(session_id="s1")
        self.state.status.model, self.state.status.tokens = "offline/offline", 5
        self.status = StatusCommand(
            command,
            interval,
            spawn=self._spawn,
            show=lambda spans: self.shown.append("".join(text for text, _style in spans)),
            complain=self.problems.append,
            clock=time.monotonic,
        )

    def _spawn(self, work) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def follow(self, **changes) -> None:
        for name, value in changes.items():
            setattr(self.state.status, name, value)
        self.status.follow(self.state)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self.tasks)


async def test_it_gets_the_session_as_json_and_its_first_line_shows(tmp_path):
    log = tmp_path / "in.jsonl"
    watched = WatchedCommand(f"tee -a {shlex.quote(str(log))} | tr -d '\\n' | wc -c | tr -d ' '; echo second")
    watched.state.status.cwd = str(tmp_path)
    await watched.follow()
    told = json.loads(log.read_text())
    assert told == session_facts(watched.state)
    assert told["model"] == "offline/offline" and told["tokens"] == 5 and told["session_id"] == "s1"
    assert watched.shown == [str(len(log.read_text()) - 1)]


async def test_without_a_change_it_does_not_run_again(tmp_path):
    log = tmp_path / "runs"
    watched = WatchedCommand(f"cat >/dev/null; echo x >> {shlex.quote(str(log))}; echo ok")
    await watched.follow()
    await watched.follow()
    assert log.read_text() == "x\n" and not watched.tasks
    await watched.follow(tokens=6)
    assert log.read_text() == "x\nx\n"


async def test_changes_while_it_runs_are_one_more_run_with_the_last_of_them(tmp_path):
    watched = WatchedCommand("sleep 0.2; cat")
    watched.status.follow(watched.state)
    await asyncio.sleep(0)
    for tokens in range(10, 20):
        watched.state.status.tokens = tokens
        watched.status.follow(watched.state)
    await watched.follow(tokens=99)
    assert [json.loads(line)["tokens"] for line in watched.shown] == [5, 99]


async def test_what_fails_leaves_the_last_line_and_is_told_once():
    watched = WatchedCommand("test $(cat | grep -c '\"tokens\":5') = 1 && echo good")
    await watched.follow()
    await watched.follow(tokens=6)
    await watched.follow(tokens=7)
    assert watched.shown == ["good"]
    assert watched.problems == ["ui.status_command ended with exit code 1"]


async def test_one_that_hangs_is_ended_with_everything_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.tui.alerts.STATUS_SECONDS", 0.5)
    mark = tmp_path / "pid"
    watched = WatchedCommand(f"sleep 300 & echo $! > {shlex.quote(str(mark))}; wait")
    await watched.follow()
    assert watched.problems == ["ui.status_command took longer than 0.5 seconds"]
    pid = mark.read_text().strip()
    deadline = time.monotonic() + PATIENCE
    while _alive(pid):
        assert time.monotonic() < deadline, "the child of the command lives on"
        await asyncio.sleep(0.02)


def _alive(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_what_the_session_says_is_never_part_of_the_command_line(tmp_path):
    watched = WatchedCommand("cat >/dev/null; echo fine")
    await watched.follow(title=f"$(touch {tmp_path}/hit); `touch {tmp_path}/hit`", branch="'; touch hit; '")
    assert watched.shown == ["fine"] and not (tmp_path / "hit").exists()


async def test_before_there_is_a_session_it_does_not_run():
    watched = WatchedCommand("echo x")
    watched.state.session_id = ""
    await watched.follow()
    assert not watched.shown


@pytest.mark.parametrize(
    ("output", "spans"),
    [
        (b"plain\nsecond", [("plain", "status")]),
        (b"\x1b[31mred\x1b[0m on", [("red", "status fg=1"), (" on", "status")]),
        (b"a\x1b]0;title\x07b\x1b[2Jc\x1b[?1049hd", [("abcd", "status")]),
        ("a\x9b2Jb\u202ec".encode(), [("abc", "status")]),
        (b"\xff\t!", [("\ufffd !", "status")]),
        (b"", []),
    ],
)
def test_r088_of_what_it_prints_colours_stay_and_nothing_else(output, spans):
    assert first_line(output) == spans
