"""Keys, sizes, stops, signals, reports and late answers in any order, in every phase: each next key is answered.

Each seed is a story of one run: the early prompt, the front-end taking over, the screen at rest, an answer that comes,
an editor, and the end by one of its ways. After each step the next key shows, with the cursor behind it and the modes
as they were; after a stop, and at the end, the terminal is as it was found. Nothing typed is lost.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server import Reply, ServerThread
from tests.terminal.conftest import MODEL
from tests.terminal.job import FOREGROUND, Job
from tests.tui.first_paint.pseudo import SOURCES

WAITS = """
import os, sys, time
class Wait:
    def find_spec(self, name, path, target=None):
        if name == "tenuto.cli.start":
            sys.meta_path.remove(self)
            while not os.path.exists({go!r}):
                time.sleep(0.01)
sys.meta_path.insert(0, Wait())
"""
EDITOR = 'while [ ! -e {done} ]; do sleep 0.02; done; rm {done}; cp "$1" {drafted}.part; mv {drafted}.part {drafted}\n'
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEFT, RIGHT, BACKSPACE = b"\x1b[D", b"\x1b[C", b"\x7f"
FOCUS = (b"\x1b[I", b"\x1b[O")
LATE = (b"\x1b[?62;22c", b"\x1b]11;rgb:1e1e/2020/2424\x1b\\", b"\x1b[?2026;2$y")
MOUSE = (b"\x1b[<64;10;5M", b"\x1b[<65;10;5M")
ENDS = {"sigterm": signal.SIGTERM, "sighup": signal.SIGHUP, "sigquit": signal.SIGQUIT, "sigint": signal.SIGINT}
PHASES = ("early", "taking over", "rest", "streaming", "editor")
MAX_DRAFT = 30


class Story:
    """One run of the program, and what must have come of it. `text` and `cursor` are the draft."""

    def __init__(self, job: Job, source: random.Random, folder: Path) -> None:
        self.job, self.source = job, source
        self.go, self.done, self.drafted = folder / "go", folder / "done", folder / "drafted"
        self.text, self.cursor = "", 0
        self.steps: list[str] = []
        self.modes: tuple[object, ...] | None = None
        self.tokens = 0
        self.lent = False

    # --- the draft ---

    def type(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)
        self.job.say(text.encode())

    def press(self, key: bytes) -> None:
        if key == BACKSPACE and self.cursor:
            self.text = self.text[: self.cursor - 1] + self.text[self.cursor :]
            self.cursor -= 1
        elif key == LEFT:
            self.cursor = max(0, self.cursor - 1)
        elif key == RIGHT:
            self.cursor = min(len(self.text), self.cursor + 1)
        self.job.say(key)

    def note(self, step: str) -> None:
        self.steps.append(step)

    # --- what may happen ---

    def happen(self, *kinds: str) -> None:
        kind = self.source.choice(kinds)
        self.note(kind)
        getattr(self, f"do_{kind.replace(' ', '_')}")()

    def do_keys(self) -> None:
        for _ in range(self.source.randrange(1, 6)):
            if len(self.text) < MAX_DRAFT and self.source.random() < 0.7:
                self.type(self.source.choice(LETTERS))
            else:
                self.press(self.source.choice((LEFT, RIGHT, BACKSPACE)))
            self.wait(0.03)

    def do_size(self) -> None:
        for _ in range(self.source.randrange(1, 4)):
            self.job.resize(self.source.randrange(60, 140), self.source.randrange(12, 45))
            self.wait(0.2)

    def do_same_size(self) -> None:
        os.kill(self.job.pid, signal.SIGWINCH)

    def do_go_on(self) -> None:
        """A SIGCONT for no reason."""
        os.killpg(self.job.pid, signal.SIGCONT)

    def do_focus(self) -> None:
        if 1004 in self.job.modes.on:
            self.job.say(b"".join(self.source.choice(FOCUS) for _ in range(self.source.randrange(1, 4))))

    def do_answer(self) -> None:
        """An answer that is late, in one piece or two."""
        answer = self.source.choice(LATE)
        self.look()  # an answer that a stop parts is lost in part
        cut = self.source.randrange(5, len(answer))  # shorter, after a tenth of a second, it is a key
        self.job.say(answer[:cut])
        self.wait(0.02)
        self.job.say(answer[cut:])
        self.look()

    def do_mouse(self) -> None:
        if 1000 in self.job.modes.on:
            self.job.say(self.source.choice(MOUSE))

    def do_stop(self) -> None:
        """Stopped so that it can give the terminal back."""
        self.wait_until_read()
        kill = self.source.choice((os.kill, os.killpg))
        kill(self.job.pid, signal.SIGTSTP)
        as_before = self.job.wait_stopped()
        self.job.pass_time(0.05)
        assert as_before, f"the line discipline of the shell is another one\n{self.tell()}"
        assert self.job.modes.state() == self.job.at_first, f"modes for the shell\n{self.tell()}"
        assert not self.job.left_to_read(), f"the terminal spoke to the shell\n{self.tell()}"
        self.fetch()

    def do_dead_stop(self) -> None:
        """Stopped before it knows."""
        self.wait_until_read()
        kill = self.source.choice((os.kill, os.killpg))
        kill(self.job.pid, signal.SIGSTOP)
        self.job.wait_stopped()
        self.wait(0.1)
        self.fetch()

    def wait_until_taken(self) -> None:
        """Until then the terminal itself answers keys."""
        self.wait_for(lambda: not termios.tcgetattr(self.job.slave)[3] & termios.ECHO, "a terminal without echo")

    def wait_until_read(self) -> None:
        """What nobody has read is the shell's when the job stops."""
        self.wait_for(lambda: fcntl.ioctl(self.job.slave, termios.FIONREAD, bytes(4)) == bytes(4), "all is read")

    def fetch(self) -> None:
        if self.source.random() < 0.3:
            self.job.resize(self.source.randrange(60, 140), self.source.randrange(12, 45))
        how = self.source.choice(list(FOREGROUND))
        self.note(how)
        self.job.go_on(how)
        if not self.lent:
            self.type(self.source.choice(LETTERS))  # the terminal may still make lines: no key of editing yet
            self.wait_until_taken()

    def wait(self, most: float) -> None:
        self.job.pass_time(self.source.uniform(0, most))

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        self.job.wait_until(condition, what, self.tell)

    # --- what must hold ---

    def look(self, *, modes: bool = True) -> None:
        """The next key shows, with the cursor behind it."""
        job = self.job
        self.tokens += 1
        token = f"{self.tokens:02d}".translate(str.maketrans("0123456789", "KLMNOPQRST"))
        self.type(token)
        self.wait_for(lambda: token in self.joined(), f"{token!r} typed")
        self.wait_for(lambda: self.at_cursor().endswith(token), f"the cursor behind {token!r}")
        for _ in token:
            self.press(BACKSPACE)
        prompt = f"❯ {self.text[: self.cursor]}"
        self.wait_for(lambda: self.at_cursor().endswith(prompt), f"{token!r} gone")
        if modes:
            self.modes = self.modes or job.modes.state()
            self.wait_for(lambda: job.modes.state() == self.modes, f"modes {self.modes}")

    def joined(self) -> str:
        return self.job.text

    def at_cursor(self) -> str:
        cursor = self.job.screen.cursor
        return self.job.screen.display[cursor.y][: cursor.x]

    def tell(self) -> str:
        modes = self.job.modes.state()
        return f"{' > '.join(self.steps)}\ndraft {self.text!r} at {self.cursor}\nmodes {modes}\n{self.job.describe()}"

    # --- the phases ---

    def early(self) -> None:
        self.wait_for(lambda: "? keys" in self.job.text, "the early prompt")
        for _ in range(self.source.randrange(1, 4)):
            self.happen("keys", "size", "same size", "go on", "stop", "dead stop", "keys")
            self.look_early()

    def look_early(self) -> None:
        """The next key shows; where the cursor is drawn is the picture's own affair."""
        self.type("Q")
        self.wait_for(lambda: "Q" in self.job.text, "a key")
        self.press(BACKSPACE)
        self.wait_for(lambda: "Q" not in self.job.text, "no key")

    def take_over(self) -> None:
        self.go.touch()
        for _ in range(self.source.randrange(1, 4)):
            self.wait(0.4)
            self.happen("keys", "size", "same size", "go on", "stop", "dead stop", "focus")
        self.wait_for(lambda: MODEL in self.job.text, "the front-end")
        self.look(modes=False)
        self.wait(0.3)
        self.look()

    def rest(self) -> None:
        everything = ("keys", "size", "same size", "go on", "stop", "dead stop", "focus", "answer", "mouse")
        for _ in range(self.source.randrange(1, 5)):
            for _ in range(self.source.randrange(1, 3)):
                self.happen(*everything)
            self.look()

    def stream(self) -> None:
        self.type("go")
        self.wait_for(lambda: "go" in self.job.text, "the prompt")
        self.note("enter")
        self.text, self.cursor = "", 0
        self.job.say(b"\r")
        self.wait_for(lambda: "word" in self.job.text, "an answer")
        self.rest()

    def edit(self) -> None:
        self.note("editor")
        self.lent = True
        self.job.say(b"\x07")
        self.wait(0.5)
        for _ in range(self.source.randrange(0, 3)):
            self.happen("size", "same size", "go on", "stop editor")
            self.wait(0.1)
        self.done.touch()
        self.wait_for(self.drafted.exists, "the editor's end")
        assert self.drafted.read_text().rstrip("\n") == self.text, self.tell()
        self.drafted.unlink()
        self.lent = False
        self.wait_until_taken()
        self.look()

    def do_stop_editor(self) -> None:
        os.killpg(self.job.pid, self.source.choice((signal.SIGTSTP, signal.SIGSTOP)))
        self.job.wait_stopped()
        self.fetch()

    def end(self, phase: str) -> tuple[int, str]:
        """End it by one of its ways; return the exit code that it should have, and how."""
        ways = [*ENDS, "keys"]
        if phase == "editor":  # Ctrl+C is the editor's own
            ways = ["sigterm", "sighup", "keys"]
        way = self.source.choice(ways)
        self.note(f"end by {way}")
        if phase not in ("early", "taking over"):
            self.look()
        if way in ENDS:
            os.kill(self.job.pid, ENDS[way])
            return 128 + ENDS[way], way
        if phase == "early":
            self.job.say(b"\x03")
            return 130, way
        self.clear()
        for _ in range(2 if "esc to" in self.job.text else 1):  # the first one says what it would stop
            self.job.say(b"/exit")
            self.wait_for(lambda: "❯ /exit" in self.job.text, "/exit")
            self.job.say(b"\r")
            self.wait(0.5)
        return 0, way

    def clear(self) -> None:
        while self.cursor < len(self.text):
            self.press(RIGHT)
        while self.text:
            self.press(BACKSPACE)


def begin(folder: Path, source: random.Random, server: object) -> Job:
    hook, work = folder / "hook", folder / "work"
    hook.mkdir()
    work.mkdir()
    (hook / "sitecustomize.py").write_text(WAITS.format(go=str(folder / "go")))
    editor = folder / "editor.sh"
    editor.write_text(EDITOR.format(done=folder / "done", drafted=folder / "drafted"))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TENUTO_HOME": str(folder / "home"),
        "TERM": "xterm-256color",
        "XTERM_VERSION": "XTerm(300)",  # what is drawn here is not wrapped again at another width
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "EDITOR": f"sh {editor}",
        "PYTHONPATH": f"{hook}:{SOURCES}",
        **server.environ(),
    }
    options = source.choice([(), ("--inline",)])
    command = (sys.executable, "-m", "tenuto", "--model", MODEL, *options)
    slow = source.choice((0.0, 0.0, 0.02, 0.15))
    return Job(work, command, environ, late=lambda: source.uniform(0, slow))


def tell_story(story: Story, last: str) -> None:
    phases: dict[str, Callable[[], None]] = {
        "early": story.early,
        "taking over": story.take_over,
        "rest": story.rest,
        "streaming": story.stream,
        "editor": story.edit,
    }
    for phase in PHASES[: PHASES.index(last) + 1]:
        if phase not in ("rest", "streaming", "editor") or phase == last or story.source.random() < 0.7:
            story.note(f"[{phase}]")
            phases[phase]()


SEEDS = range(int(os.environ.get("SOAK_FROM", "0")), int(os.environ.get("SOAK_TO", "24")))
"""For a longer soak, by hand: others."""
ALWAYS = 3


@pytest.mark.terminal
@pytest.mark.parametrize(
    "seed", [pytest.param(one, marks=[pytest.mark.full] if one >= ALWAYS else []) for one in SEEDS]
)
def test_t34_r080_whatever_happens_keys_are_answered_and_the_terminal_is_given_back(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    with (
        ServerThread(lambda _request: Reply("word " * 400, chunk_size=10, delay_per_event=0.02)) as server,
        begin(tmp_path, source, server) as job,
    ):
        story = Story(job, source, tmp_path)
        last = source.choice(PHASES)
        tell_story(story, last)
        draft = story.text
        code, way = story.end(last)
        assert job.wait_ended() in (code, 128 - code), story.tell()
        job.pass_time(0.1)
        assert job.modes.state() == job.at_first, story.tell()

        assert termios.tcgetattr(job.slave) == job.before, story.tell()
        assert not job.left_to_read(), story.tell()
        assert b"Traceback" not in job.output, story.tell()
        if way != "keys" and last not in ("early", "taking over") and draft.strip():
            kept = [json.loads(path.read_bytes())["text"] for path in (tmp_path / "home" / "drafts").glob("*.json")]
            assert draft in kept, f"{draft!r} is not in {kept}\n{story.tell()}"
