"""Every byte that a terminal gets while hostile text goes through every door (R-088, T-39); and none while idle."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.examples import in_turn
from tests.server import Call, Reply, Request
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import PATIENCE

pytestmark = pytest.mark.terminal
SCREENS = pytest.mark.parametrize("options", [(), ("--inline",)], ids=["full", "inline"])
PAYLOAD = (
    "<\x1b]0;EVIL\x07\x1b]52;c;RVZJTA==\x07\x1b]8;;evil:x\x1b\\\x1bPEVIL\x1b\\\x1b_EVIL\x1b\\\x1b[6n\x1b[77;77H"
    "\x1bc\x1b]9;EVIL\x07\x1b]777;notify;EVIL;EVIL\x07\x9b31mC1\x9d0;EVIL\x9c\u202eEVIL\u202c\x1b[?1337h\x07\x08>"
)
NEVER = (
    *("\x1b]0;EVIL", "\x1b]52", "evil:x", "\x1bP", "\x1b_", "\x1b[6n", "\x1b[77;77H", "\x1bc", "\x1b]9;EVIL"),
    *("notify;EVIL", "\u202e", "\u202c", "\x1b[?1337h"),
)
OURS = re.compile(
    r"\x1b\[[0-9;:<=>?]*\$?[A-Za-z@]"  # CSI
    r"|\x1b\](?:0|8|11|22|99|777);[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)"  # title, links, colours, notifications
    r"|\x1b[78]|\x07|[\r\n]|\x08"
)


def script(request: Request) -> Reply:
    called = any(item.kind == "result" for item in request.turn)
    command = {"tool": "cat payload", "ask": f"rm -r x # {PAYLOAD}"}.get(said(request), "")
    if command and not called:
        return Reply(PAYLOAD, thinking=PAYLOAD, tool_calls=[Call("bash", {"command": command})])
    return Reply(f"Done. {PAYLOAD}")


def strange_bytes(output: bytes) -> list[str]:
    """What a terminal acts on and is not one of our own sequences."""
    text = output.decode("utf-8", "replace")
    return [text[max(0, text.find(hit) - 60) : text.find(hit) + 20] for hit in NEVER if hit in text] + re.findall(
        r"[\x00-\x1f\x7f-\x9f].{0,9}", OURS.sub("", text)
    )


@SCREENS
def test_t39_r088_only_our_own_sequences_reach_the_terminal(place: Workplace, options: tuple[str, ...]) -> None:
    server = place.serve(script)
    (place.work / "payload").write_text(PAYLOAD)
    (place.work / "na\x1b]0;EVIL\x07me\u202e.txt").write_text("x")
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    (place.work / ".git" / "HEAD").write_text(f"ref: refs/heads/{PAYLOAD}\n")
    place.settings("[ui]\nstatus_command = 'cat payload'\nnotification_seconds = 0\nmouse = 'off'\n")
    environ = {**server.environ(), "TENUTO_MODE": "auto", "TERM": "xterm-256color"}
    terminal = PseudoTerminal(place.work, place.home, environ, "--model", MODEL, *options)
    try:
        terminal.wait_for("? keys")
        terminal.wait_for(MODEL)
        terminal.write(b"\x1b[O")  # nobody looks: the end is told
        for text in ("tool", "ask", "/rename a title", "@na"):
            terminal.write(f"\x1b[200~{text}\x1b[201~".encode())
            terminal.wait_for(text[-5:].strip())
            if not text.startswith("@"):
                terminal.write(b"\r")
            settle(terminal)
        terminal.wait_until(lambda: b"\x1b]777;notify;" in terminal.output, "a notification")
    finally:
        terminal.close()
    assert strange_bytes(terminal.output) == []


@SCREENS
def test_r088_what_a_user_pastes_is_sent_as_it_is_and_painted_safely(
    place: Workplace, options: tuple[str, ...]
) -> None:
    server = place.serve(script)
    (place.home / "history").mkdir()
    (place.home / "history" / "all.jsonl").write_text(
        '{"text": "earlier \\u009b31m \\u202eprompt \\u001b[6n of mine"}\n'
    )
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL, *options)
    pasted = "if \u202eadmin\u202c \u2066then\u2069 界 go"
    try:
        paste = f"\x1b[200~{pasted}\x1b[201~".encode()
        terminal.wait_for("? keys")  # before, the terminal itself echoes
        terminal.write(paste)  # into the first light, where there is one
        terminal.wait_for("go")
        terminal.wait_for(MODEL)
        terminal.write(b"\x15" + paste)
        terminal.wait_for("if admin then")
        terminal.write(b"\x1b[D\x1b[Dnow ")
        terminal.wait_for("now go")
        shown = next(row for row in terminal.text().split("\n") if "now go" in row)
        assert re.sub(" +", " ", shown).strip() == "❯ if admin then 界 now go"
        terminal.write(b"\r")
        terminal.wait_until(lambda: server.requests, "the request")
        assert server.requests[-1].last_user.startswith(pasted.replace("go", "now go"))
        settle(terminal)
        terminal.write(b"\x1b[A\x1b[A")
        terminal.wait_for("of mine")
        settle(terminal, 0.5)
    finally:
        terminal.close()
    assert strange_bytes(terminal.output) == []


def settle(terminal: PseudoTerminal, seconds: float = 1.5) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        terminal.read()


def wake_ups(pid: int) -> int:
    """How often the threads of a process have gone to sleep by themselves."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.MULTILINE)
        total += int(found[1]) if found else 0
    return total


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts in /proc")
@pytest.mark.parametrize(("options", "focus"), in_turn([(), ("--inline",)], [b"\x1b[I", b"\x1b[O"]))
def test_while_nothing_happens_nothing_runs(place: Workplace, options: tuple[str, ...], focus: bytes) -> None:
    server = place.serve(script)
    terminal = PseudoTerminal(place.work, place.home, server.environ(), "--model", MODEL, *options)
    try:
        terminal.wait_for(MODEL)
        terminal.write(b"hello\r")
        terminal.wait_for("Done.")
        terminal.write(focus + b"a draft")
        deadline = time.monotonic() + PATIENCE
        while True:
            settle(terminal, 2.0)  # toasts go, files are looked at once
            before, written = wake_ups(terminal.pid), len(terminal.output)
            settle(terminal, 2.0)
            if wake_ups(terminal.pid) - before <= 4 and len(terminal.output) == written:
                break
            assert time.monotonic() < deadline, f"{wake_ups(terminal.pid) - before} wake-ups in two seconds"
    finally:
        terminal.close()
