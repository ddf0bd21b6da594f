from __future__ import annotations

import base64
import stat

import pytest

from tenuto.tui.terminal.clipboard import copy_commands, copy_sequence, copy_text, encode_for


@pytest.fixture
def tools(tmp_path):
    """A directory for the search path, and what makes a command in it that keeps what it is given."""

    def make(name: str, exit_code: int = 0):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\ncat > "{tmp_path}/{name}.got"\nexit {exit_code}\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return tmp_path / f"{name}.got"

    make.path = f"{tmp_path}:/usr/bin:/bin"
    return make


async def test_a_tool_that_worked_is_named_and_has_the_text(tools, monkeypatch):
    got = tools("wl-copy")
    monkeypatch.setenv("PATH", tools.path)
    copied = await copy_text("grüße\n", {"PATH": tools.path, "WAYLAND_DISPLAY": "w", "TERM": "xterm"})
    assert got.read_text() == "grüße\n"
    assert copied.message == "Copied 6 characters (wl-copy)" and copied.sent
    encoded = base64.b64encode("grüße\n".encode()).decode()
    assert copied.sequence == f"\x1b]52;c;{encoded}\x07"


async def test_without_a_tool_it_says_that_the_terminal_was_asked(tools):
    copied = await copy_text("x", {"PATH": "/nowhere", "TERM": "xterm"})
    assert copied.message == "Sent 1 character to the terminal's clipboard (OSC 52)"


async def test_a_tool_that_failed_is_not_said_to_have_copied(tools, monkeypatch):
    tools("xclip", exit_code=1)
    monkeypatch.setenv("PATH", tools.path)
    copied = await copy_text("ab", {"PATH": tools.path, "DISPLAY": ":0", "TERM": "xterm"})
    assert copied.message.startswith("Sent 2 characters to the terminal")


@pytest.mark.parametrize(
    "environ",
    [
        {"TERM_PROGRAM": "Apple_Terminal", "TERM": "xterm-256color"},
        {"TERM": "linux"},
        {"TERM": "dumb"},
    ],
)
async def test_where_there_is_no_way_it_says_so(environ):
    copied = await copy_text("ab", {"PATH": "/nowhere", **environ})
    assert not copied.sent and copied.sequence == ""
    assert copied.message.startswith("Not copied: this terminal takes no copies from programs")


async def test_too_much_for_the_terminal_is_not_sent():
    copied = await copy_text("x" * 2_000_000, {"PATH": "/nowhere", "TERM": "xterm"})
    assert not copied.sent and "2 MB are too much" in copied.message


def test_over_ssh_the_other_machines_clipboard_is_left_alone(tools):
    tools("wl-copy")
    environ = {"PATH": tools.path, "WAYLAND_DISPLAY": "w"}
    assert copy_commands(environ) == [("wl-copy",)]
    assert copy_commands({**environ, "SSH_TTY": "/dev/pts/1"}) == []


def test_in_tmux_ssh_is_what_its_client_came_by(tools):
    tools("wl-copy")
    environ = {"PATH": tools.path, "WAYLAND_DISPLAY": "w", "TMUX": "x"}
    assert ("wl-copy",) not in copy_commands({**environ, "SSH_CONNECTION": "1 2 3 4"})
    assert ("wl-copy",) in copy_commands({**environ, "SSH_TTY": "/dev/pts/1"}), "begun over ssh, attached here"


@pytest.mark.parametrize("environ", [{"STY": "1", "TERM": "xterm-256color"}, {"TERM": "screen.xterm-256color"}])
async def test_gnu_screen_gets_pieces_that_it_passes_on(environ):
    text = "x" * 2_000
    copied = await copy_text(text, {"PATH": "/nowhere", **environ})
    pieces = copied.sequence.removeprefix("\x1bP").removesuffix("\x1b\\").split("\x1b\\\x1bP")
    assert copied.sent and len(pieces) > 1 and max(map(len, pieces)) <= 700
    assert "".join(pieces) == f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"


def test_in_tmux_tmux_itself_is_asked_and_the_terminal_both_ways(tools):
    tools("tmux")
    environ = {"PATH": tools.path, "TMUX": "x", "TERM": "tmux-256color", "SSH_TTY": "/dev/pts/1"}
    assert copy_commands(environ) == [("tmux", "load-buffer", "-w", "-")]
    assert copy_sequence("hi", environ) == "\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"


def test_windows_own_command_reads_utf_16():
    assert encode_for(("clip.exe",), "ü字") == "ü字".encode("utf-16-le")
    assert encode_for(("pbcopy",), "ü") == "ü".encode()
