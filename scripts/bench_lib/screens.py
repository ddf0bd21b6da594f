"""What the two screens cost: streams, keys, sizes, memory, rest (DESIGN section 10, `scripts/bench tui`)."""

from __future__ import annotations

import fcntl
import json
import struct
import termios
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scripts.bench_lib.measures import (
    Figures,
    Lab,
    Measure,
    first_token,
    quantile,
    type_until_echo,
    watch_start,
)
from scripts.bench_lib.process import FailedRunError, cpu_clock, family, high_water, resident, run
from scripts.bench_lib.program import ROOT, Program
from scripts.bench_lib.screen import seen_at
from scripts.bench_lib.terminal import COLUMNS, ROWS, Terminal
from tests.server.scripts import END_MARK

ITEMS = 10_000
ENTRIES = 10_600
"""Entries of a session that shows about so many items."""
SAMPLES = 150
KEY_PAUSE = 0.04
LETTERS = [chr(code) for code in range(0x1200, 0x1380) if unicodedata.category(chr(code)) == "Lo"]
"""Ethiopic letters, one cell each: no program shows them by itself, and each is typed once."""
KEYS_A_LINE = 50
REST_SECONDS = 5.0
SYNC = b"\x1b[?2026h"
HOME_KEY = b"\x1b[1;5H"
PAGE_UP_KEY = b"\x1b[5~"
PAGES_AT_A_TIME = 40
SURE = 3
"""So many times a key that draws nothing is not just late."""
END_KEY = b"\x1b[1;5F"
CLEAR_KEY = b"\x15"
FOCUS_OUT, FOCUS_IN = b"\x1b[O", b"\x1b[I"
PATIENCE = 120.0
SHORT_QUIET = 0.4
LONG_QUIET = 5.0
"""Longer than a line shows that goes away by itself."""

PATHS = 100_000
SESSIONS = 3_000


def inline_of(program: Program) -> Program:
    """Return the same program with the other screen."""
    return replace(program, name=f"{program.name} --inline", interactive=f"{program.interactive} --inline")


def start(lab: Lab, program: Program) -> Figures:
    """From exec to the first glyph, to the first typed key, to the front-end's own first frame, to the session."""
    with lab.open(program) as terminal:
        figures = watch_start(terminal)
        up = first_token(terminal, SYNC)
        if up is not None:
            figures["front-end up ms"] = up * 1000
        opened = _opened(terminal)
        if opened is not None:
            figures["session shown ms"] = opened * 1000
        return figures


def rest(lab: Lab, program: Program) -> Figures:
    """What is used and written while nothing happens."""
    with lab.open(program) as terminal:
        _come_to_rest(terminal)
        return _rest(terminal)


def stream(script: str) -> Callable[[Lab, Program], Figures]:
    """A long answer: when its end is on screen, what it costs, how much the terminal has to read."""

    def measure(lab: Lab, program: Program) -> Figures:
        lab.server.play(script)
        with lab.open(program) as terminal:
            _settle(terminal)
            cpu, written = _cpu(terminal), _written(terminal)
            terminal.write(b"\r")
            seen = terminal.wait_for(END_MARK.encode(), PATIENCE)
            if seen is None:
                raise FailedRunError("the end of the answer did not come on screen")
            used = _cpu(terminal) - cpu
            terminal.wait_quiet(SHORT_QUIET, 3.0)
            record = lab.server.records()[-1]
            return {
                "on screen after ms": (terminal.started + seen - record["started"]) * 1000,
                "cpu s": used,
                "written KB": (_written(terminal) - written) / 1024,
                "memory MB": sum(high_water(pid) for pid in family(terminal.pid)),
            }

    return measure


def long_transcript(lab: Lab, program: Program) -> Figures:
    """A session of 10 000 items, each of which was on the screen: keys, sizes, focus, theme, memory, rest.

    Inline the terminal itself holds what is above; there the end of the session is printed and no more.
    """
    directory = _long_session(lab)
    with lab.open(program) as terminal:
        _come_to_rest(terminal)
        empty = _resident(terminal)
    lab.server.play("trickle:8")
    with lab.open(program, f"--resume {directory.name}") as terminal:
        _come_to_rest(terminal)
        terminal.write(CLEAR_KEY)
        if "--inline" not in program.interactive:
            _read_all(terminal)
        terminal.wait_quiet(LONG_QUIET, 15.0)
        figures = {"memory growth MB": _resident(terminal) - empty}
        if "--inline" not in program.interactive:
            figures |= _act(terminal, "home", lambda: terminal.write(HOME_KEY))
            figures |= _act(terminal, "end", lambda: terminal.write(END_KEY))
        figures |= _key_figures("key idle", _keys(terminal, 0))
        figures |= _rest(terminal)
        figures |= _act(terminal, "width change", lambda: _resize(terminal, COLUMNS - 20))
        figures |= _act(terminal, "width back", lambda: _resize(terminal, COLUMNS))
        figures |= _act(terminal, "focus out", lambda: terminal.write(FOCUS_OUT))
        figures |= _act(terminal, "focus in", lambda: terminal.write(FOCUS_IN))
        terminal.write(CLEAR_KEY)  # the letters that are left would make a prompt of it
        terminal.write(b"/theme light")
        terminal.wait_quiet(SHORT_QUIET, 5.0)
        figures |= _act(terminal, "theme", lambda: terminal.write(b"\r"))
        terminal.write(b"go on\r")
        while not lab.server.records():
            terminal.read(0.05)
            if terminal.ended:
                raise FailedRunError("the program ended")
        terminal.wait_quiet(0.05, 0.5)
        return figures | _key_figures("key streaming", _keys(terminal, SAMPLES))


def within(lab: Lab, program: Program) -> Figures:
    """What one more item, another width and all items cost the full screen alone, in a process of its own."""
    words = [str(ROOT / ".venv/bin/python"), "-m", "scripts.bench_lib.screen_within", str(ITEMS)]
    done = run(words, lab.environ(program) | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}, ROOT)
    return json.loads(done.output)


def paths(lab: Lab, program: Program) -> Figures:
    """What a key behind `@` costs with `PATHS` files, in a process of its own."""
    words = [str(ROOT / ".venv/bin/python"), "-m", "scripts.bench_lib.paths_within", str(PATHS)]
    done = run(words, lab.environ(program) | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}, ROOT)
    return json.loads(done.output)


# --- parts ---


def _settle(terminal: Terminal) -> None:
    type_until_echo(terminal)
    terminal.wait_quiet(0.6, 8.0)


def _come_to_rest(terminal: Terminal) -> None:
    """Wait until the session is open, which happens behind the first frames, and everything is imported."""
    _settle(terminal)
    while _opened(terminal) is None and not terminal.ended and terminal.now < PATIENCE:
        terminal.read(PATIENCE - terminal.now)
    terminal.wait_quiet(LONG_QUIET, 15.0)


def _opened(terminal: Terminal) -> float | None:
    """Return when the session was shown to be open: by its model's name."""
    return seen_at(terminal.chunks, lambda rows: any("/test" in row for row in rows))


def _cpu(terminal: Terminal) -> float:
    return cpu_clock(family(terminal.pid))


def _resident(terminal: Terminal) -> float:
    return sum(resident(pid) for pid in family(terminal.pid))


def _written(terminal: Terminal) -> int:
    return sum(len(data) for _, data in terminal.chunks)


def _rest(terminal: Terminal) -> Figures:
    cpu, written, deadline = _cpu(terminal), _written(terminal), terminal.now + REST_SECONDS
    while terminal.now < deadline:
        terminal.read(deadline - terminal.now)
    used = (_cpu(terminal) - cpu) / REST_SECONDS * 100
    return {"idle cpu %": used, "idle written bytes": float(_written(terminal) - written)}


def _act(terminal: Terminal, name: str, action: Callable[[], None]) -> Figures:
    """Do something; return how long until the last byte of what it makes the program draw, and what that costs."""
    cpu, begun = _cpu(terminal), terminal.now
    action()
    terminal.wait_quiet(SHORT_QUIET, 10.0)
    last = max(begun, terminal.chunks[-1][0])
    return {f"{name} ms": (last - begun) * 1000, f"{name} cpu ms": (_cpu(terminal) - cpu) * 1000}


def _resize(terminal: Terminal, columns: int) -> None:
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))


def _read_all(terminal: Terminal) -> None:
    """Page up to the beginning, so that every entry has been loaded once, then go back to the end."""
    unmoved = 0
    while unmoved < SURE:
        known = len(terminal.chunks)
        terminal.write(PAGE_UP_KEY * PAGES_AT_A_TIME)
        terminal.wait_quiet(SHORT_QUIET, 5.0)
        unmoved = 0 if len(terminal.chunks) > known else unmoved + 1
    terminal.write(END_KEY)


def _keys(terminal: Terminal, offset: int) -> list[float]:
    """Type keys, 40 ms apart; return how long each took to come back in milliseconds."""
    found: list[float] = []
    for place in range(SAMPLES):
        if place % KEYS_A_LINE == 0:
            terminal.write(CLEAR_KEY)
            terminal.wait_quiet(KEY_PAUSE, 0.2)
        key = LETTERS[offset + place].encode()
        typed = terminal.now
        terminal.write(key)
        seen = terminal.wait_for(key, 2.0)
        if seen is None:
            raise FailedRunError(f"the key number {place} did not come back")
        found.append((seen - typed) * 1000)
        pause = typed + KEY_PAUSE
        while terminal.now < pause:
            terminal.read(pause - terminal.now)
    return found


def _key_figures(name: str, latencies: list[float]) -> Figures:
    return {f"{name} p{share} ms": quantile(latencies, share / 100) for share in (50, 95, 99)}


def picker(lab: Lab, program: Program) -> Figures:
    """`/resume` where a project has 3 000 sessions: from Enter to the first rows, and what a letter costs there."""
    from tests.session.long import write_many

    if "many" not in lab.sessions:
        home = Path(lab.surroundings.environ()["TENUTO_HOME"])
        write_many(home, lab.surroundings.project, SESSIONS)
        lab.sessions["many"] = home
    with lab.open(program) as terminal:
        _come_to_rest(terminal)
        terminal.write(CLEAR_KEY + b"/resume")
        terminal.wait_quiet(SHORT_QUIET, 3.0)
        begun, cpu = terminal.now, _cpu(terminal)
        terminal.write(b"\r")
        shown = terminal.wait_for(b"A long session", PATIENCE)
        if shown is None:
            raise FailedRunError("no session came on screen")
        figures = {"first rows ms": (shown - begun) * 1000, "cpu ms": (_cpu(terminal) - cpu) * 1000}
        terminal.wait_quiet(SHORT_QUIET, 3.0)
        return figures | _act(terminal, "letter", lambda: terminal.write(b"z"))


def _long_session(lab: Lab) -> Path:
    from tests.session.long import write_session

    if "items" not in lab.sessions:
        home = Path(lab.surroundings.environ()["TENUTO_HOME"])
        project = lab.surroundings.project
        size = ENTRIES * 1_000
        lab.sessions["items"] = write_session(home, project, ENTRIES, size, "openai-chat/test")
    return lab.sessions["items"]


STREAMS = ("stream:200", "stream:2000", "fence:50", "bullets:50", "rows:50", "line:100")
SCREEN_MEASURES = (
    Measure("tui-start", "interactive", start, for_peers=False, both_screens=True, named_only=True),
    Measure("tui-rest", "interactive", rest, 0.2, for_peers=False, both_screens=True, named_only=True),
    *(
        Measure(
            f"tui-{script.replace(':', '-')}",
            "interactive",
            stream(script),
            0.3,
            for_peers=False,
            both_screens=True,
            named_only=True,
        )
        for script in STREAMS
    ),
    Measure("tui-10000", "interactive", long_transcript, 0.2, for_peers=False, both_screens=True, named_only=True),
    Measure("tui-within", "interactive", within, 0.3, for_peers=False, named_only=True),
    Measure("tui-sessions", "interactive", picker, 0.3, for_peers=False, both_screens=True, named_only=True),
    Measure("tui-paths", "interactive", paths, 0.3, for_peers=False, named_only=True),
)
