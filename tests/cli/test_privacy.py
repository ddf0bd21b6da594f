"""What a run leaves under `$TENUTO_HOME` is its owner's alone (R-075, T-31)."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import time
import zlib
from pathlib import Path

import pytest

from tests.program import TENUTO
from tests.server import Call, Reply, Request, ServerThread
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import PATIENCE


def png() -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def script(request: Request) -> Reply:
    """Once: a long output, a picture, a background job. Then only talk."""
    if any(item.kind == "call" for item in request.items):
        return Reply("Seen.")
    calls = [
        Call("bash", {"command": "seq 1 20000"}),
        Call("read", {"path": "dot.png"}),
        Call("write", {"path": "made/by/us.txt", "content": "x\n"}),
        Call("bash", {"command": "echo up; sleep 0.2", "background": True}),
    ]
    return Reply("I will look.", tool_calls=calls)


WATCH = """
import os, sys

def note(event, values):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        with open(os.environ["SEEN"], "a") as file:
            file.write(f"{event} {values[1:] if event != 'socket.getaddrinfo' else values[:2]}\\n")

sys.addaudithook(note)
"""
IMPATIENT = """
import asyncio

sleep = asyncio.sleep
asyncio.sleep = lambda seconds, result=None: sleep(min(seconds, 0.05), result)
"""
"""What a start puts off for seconds, it does at once."""
UPDATES, CATALOGUE = "'pypi.org'", "'raw.githubusercontent.com'"
SCREENS = {"full": [], "inline": ["--inline"], "plain": ["--screen-reader"]}


def watched(tmp_path: Path, **environ: str) -> dict[str, str]:
    """Variables of a program that writes down which connections it opens."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(WATCH)
    ours = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    return {**ours, "PYTHONPATH": str(tmp_path / "hook"), "SEEN": str(tmp_path / "seen"), **environ}


def foreign(tmp_path: Path, url: str) -> list[str]:
    """Return what was connected to beside the address of the model's server."""
    host, port = url.removeprefix("http://").partition("/")[0].rsplit(":", 1)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert any(port in line for line in seen), "the watch sees what there is"
    return [line for line in seen if host not in line or port not in line]


def test_there_is_no_telemetry_a_run_connects_to_the_configured_provider_alone(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "dot.png").write_bytes(png())
    with ServerThread(script) as server:
        environ = watched(tmp_path, **server.environ())
        command = [*TENUTO, "-p", "look", "--model", "anthropic/test", "--mode", "auto"]
        done = subprocess.run(
            command, cwd=work, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert foreign(tmp_path, server.environ()["ANTHROPIC_BASE_URL"]) == []


def see_a_session(tmp_path: Path, *arguments: str, asks: tuple[str, ...] = (), **environ: str) -> set[str]:
    """Work on a screen, with tools and a command, until it has asked for `asks`; return what it connected to else."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "dot.png").write_bytes(png())
    seen = watched(tmp_path, **environ)
    (tmp_path / "hook" / "sitecustomize.py").write_text(WATCH + IMPATIENT)
    with ServerThread(script) as server:
        own = {**seen, **server.environ()}
        screen = PseudoTerminal(work, tmp_path / "home", own, "--model", "anthropic/test", "--mode", "auto", *arguments)
        try:
            screen.wait_for("anthropic/test")
            screen.write(b"hello there\r")
            screen.wait_for("Seen.")
            screen.write(b"!echo done with $((40 + 2))\r")
            screen.wait_for("done with 42")
            deadline = time.monotonic() + PATIENCE
            while not all(host in (tmp_path / "seen").read_text() for host in asks):
                assert time.monotonic() < deadline, (tmp_path / "seen").read_text()
                screen.read()
            screen.write(b"/exit\r")
            screen.wait_for("--resume")
        finally:
            screen.close()
        return set(foreign(tmp_path, server.environ()["ANTHROPIC_BASE_URL"]))


@pytest.mark.terminal
@pytest.mark.parametrize("screen", SCREENS)
def test_k4_a_screen_with_both_checks_off_connects_to_the_configured_provider_alone(
    tmp_path: Path, screen: str
) -> None:
    off = {"TENUTO_UPDATE__CHECK": "false", "TENUTO_CATALOGUE__REFRESH": "false"}
    assert see_a_session(tmp_path, *SCREENS[screen], **off) == set()


@pytest.mark.terminal
def test_k4_a_screen_as_it_comes_asks_for_the_version_and_for_prices_that_are_old_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    """By name: where there is no network the question for their addresses is all there is."""
    others = see_a_session(tmp_path, asks=(UPDATES,))
    asked = {line for line in others if line.startswith("socket.getaddrinfo")}
    assert asked
    assert [line for line in asked if UPDATES not in line and CATALOGUE not in line] == []


@pytest.mark.terminal
def test_t31_r075_files_are_0600_and_directories_0700_under_umask_000(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "dot.png").write_bytes(png())
    before = os.umask(0)
    try:
        # It lists a larger window than it takes: what a refusal names is learned and kept in models.json.
        with ServerThread(script, window=20_000, listed_window=60_000) as server:
            environ = {**server.environ(), "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(home)}
            model = ["--model", "anthropic/test", "--mode", "auto"]
            for prompt in (["-p", "look"], ["-p", "--continue", "again"]):
                done = subprocess.run(
                    [*TENUTO, *prompt, *model],
                    cwd=work,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=60,
                )
                assert done.returncode == 0, done.stderr
            assert any(request.refused for request in server.requests)
            screen = PseudoTerminal(work, home, server.environ(), *model)
            try:
                screen.wait_for("anthropic/test")
                screen.write(b"hello there\r")
                screen.wait_for("Seen.")
                screen.write(b"/fork\r")
                screen.wait_for("Forked from")
                screen.write(b"/exit\r")
                screen.wait_for("--resume")
            finally:
                screen.close()
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in [home, *home.rglob("*")]}
    names = {path.name for path in found}
    assert {"events.jsonl", "meta.json", "models.json", "stderr.log", "outputs", "blobs"} <= names, names
    assert any(path.parent.name == "outputs" for path in found)
    assert any(path.parent.name == "blobs" for path in found)
    assert any(b"hello there" in path.read_bytes() for path in home.glob("history/*"))
    wrong = {
        str(path.relative_to(home)): oct(mode)
        for path, mode in found.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}
    assert stat.S_IMODE((work / "made/by/us.txt").stat().st_mode) == 0o666, "the user's own files go by the umask"
