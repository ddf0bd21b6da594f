"""The real program in a real terminal: a tmux of its own, keys in, screens out.

`Screen` is a terminal with a shell in it. The shell outlives the program, so that the state of the terminal can be
asked for afterwards. Nothing here sleeps to let something happen: everything waits until it shows on the screen.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tenuto.tui.machine.approval import GRACE

PATIENCE = 120.0
"""Seconds to wait for anything; a hang guard, not a measure."""
POLL = 0.03
BIN = Path(sys.executable).parent
SHELL_PROMPT = "shell> "
READY = "? keys"
"""The end of the empty prompt's placeholder."""
TMUX_SETTINGS = """
set -g default-terminal tmux-256color
set -g escape-time 0
set -g status off
set -g remain-on-exit on
set -g focus-events on
set -g history-limit 20000
"""
_numbers = itertools.count()


def source_path() -> dict[str, str]:
    """Where the program's source is, if the tests were told: those of another tree test that tree."""
    return {"PYTHONPATH": os.environ["PYTHONPATH"]} if os.environ.get("PYTHONPATH") else {}


class Screen:
    """A terminal of `columns` x `rows` cells in `cwd`; `environ` comes on top of a small clean environment."""

    def __init__(
        self, folder: Path, cwd: Path, environ: Mapping[str, str] | None = None, columns: int = 100, rows: int = 30
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.socket = f"tenuto-test-{os.getpid()}-{next(_numbers)}"
        self.environ = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TENUTO_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "PS1": SHELL_PROMPT,
            "TMUX_TMPDIR": os.environ.get("TMUX_TMPDIR", "/tmp"),
            **source_path(),
            **(environ or {}),
        }
        told = self.home / "told"
        told.mkdir(mode=0o700, parents=True, exist_ok=True)
        (told / "tmux-extended-keys").touch()  # tmux is as it comes; what is said of that is tested elsewhere
        settings = folder / "tmux.conf"
        settings.write_text(TMUX_SETTINGS)
        self.tmux(
            "-f", settings, "new-session", "-d", "-s", "main", "-x", columns, "-y", rows, "-c", cwd, "/bin/sh", "-i"
        )
        try:
            self.wait_for(SHELL_PROMPT.strip())
        except BaseException:
            self.close()
            raise

    def tmux(self, *arguments: object) -> str:
        """Run a tmux command and return what it printed."""
        done = subprocess.run(
            ["tmux", "-L", self.socket, *map(str, arguments)],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"tmux {arguments}: {done.stderr}"
        return done.stdout

    def close(self) -> None:
        """End the terminal and what still runs in it."""
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], env=self.environ, capture_output=True, check=False)
        # tmux leaves its socket behind.
        Path(self.environ["TMUX_TMPDIR"], f"tmux-{os.getuid()}", self.socket).unlink(missing_ok=True)

    # --- looking ---

    def rows(self) -> list[str]:
        """The rows that show, top to bottom, without the spaces at their ends."""
        return [row.rstrip() for row in self.tmux("capture-pane", "-p", "-t", "main").split("\n")[:-1]]

    def capture(self) -> str:
        """The screen as one text."""
        return "\n".join(self.rows())

    def whole(self) -> str:
        """The normal screen with its scrollback."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "main")

    def cursor(self) -> tuple[int, int]:
        """Column and row of the cursor, from 0."""
        column, row = self.tmux("display-message", "-p", "-t", "main", "#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def wait_until(self, condition: Callable[[str], object], what: str = "", timeout: float = PATIENCE) -> str:
        """Wait until the screen fulfils a condition; return that screen."""
        deadline = time.monotonic() + timeout
        while True:
            shown = self.capture()
            if condition(shown):
                return shown
            if time.monotonic() > deadline:
                raise AssertionError(f"never came: {what or condition}\n{frame(shown)}")
            time.sleep(POLL)

    def wait_for(self, text: str, timeout: float = PATIENCE) -> str:
        """Wait until a text shows."""
        return self.wait_until(lambda shown: text in shown, repr(text), timeout)

    def wait_for_all(self, *texts: str, without: str = "") -> str:
        """Wait until all of these show at once, and something else does not; return that screen."""
        return self.wait_until(
            lambda shown: all(text in shown for text in texts) and not (without and without in shown),
            f"{texts}" + (f" without {without!r}" if without else ""),
        )

    def wait_gone(self, text: str, timeout: float = PATIENCE) -> str:
        """Wait until a text shows no more."""
        return self.wait_until(lambda shown: text not in shown, f"no {text!r}", timeout)

    def wait_settled(self, *texts: str, timeout: float = PATIENCE) -> str:
        """Wait until all texts show, nothing works any more and nothing changes; return the screen."""
        seen = ["", "", ""]

        def is_settled(shown: str) -> bool:
            seen.append(shown)
            idle = all(text in shown for text in texts) and READY in shown and not works(shown)
            return idle and {*seen[-4:]} == {shown}  # else it may be half of a frame, or one before work is shown

        return self.wait_until(is_settled, f"{texts} and an idle prompt", timeout)

    # --- doing ---

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self.tmux("send-keys", "-t", "main", "-l", "--", text)

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names: `Enter`, `Escape`, `C-c`, `BTab`, `Up`."""
        self.tmux("send-keys", "-t", "main", *names)

    def submit(self, text: str) -> None:
        """Type a text, wait until it shows in the prompt, press Enter."""
        self.type(text)
        self.wait_until(lambda shown: text[-20:] in prompt_of(shown), f"{text!r} in the prompt")
        self.keys("Enter")

    def answer(self, title: str, key: str) -> None:
        """Wait for the approval panel of that title and answer it, once it takes answers."""
        self.wait_for(title)
        time.sleep(GRACE)
        self.keys(key)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, and wait until it has it: tmux tells sizes that follow each other later."""
        self.tmux("resize-window", "-t", "main", "-x", columns, "-y", rows)
        descriptor = os.open(
            self.tmux("display-message", "-p", "-t", "main", "#{pane_tty}").strip(), os.O_RDWR | os.O_NOCTTY
        )
        try:
            self.wait_until(lambda _: os.get_terminal_size(descriptor) == (columns, rows), "another size")
        finally:
            os.close(descriptor)

    def paste(self, text: str) -> None:
        """Paste as a terminal does, bracketed when the program asked for it."""
        file = self.folder / "paste.txt"
        file.write_text(text, encoding="utf-8")
        self.tmux("load-buffer", file)
        self.tmux("paste-buffer", "-p", "-t", "main")

    # --- the shell around the program ---

    def shell(self, command: str) -> str:
        """Run a command in the shell around the program; return what it printed."""
        self.tmux("clear-history", "-t", "main")
        self.type(f"clear; {command}; echo end''mark=$?")
        self.keys("Enter")
        self.wait_until(lambda _: re.search(r"^endmark=\d+", self.whole(), re.MULTILINE), command)
        text = self.whole()
        return text[: text.index("endmark=")].rpartition("end''mark=$?")[2].strip("\n")

    def start(self, *arguments: str, ready: bool = True) -> None:
        """Start the program from the shell."""
        self.tmux("clear-history", "-t", "main")
        self.type(f"clear; {shlex.join(['tenuto', *arguments])}; echo exit''code=$?")
        self.keys("Enter")
        if ready:
            self.wait_until(lambda shown: READY in shown and "exit''code" not in shown, "the prompt")

    def wait_exit(self) -> tuple[int, str]:
        """Wait until the program has ended; return its exit code and what it left on the normal screen."""
        shown = self.wait_until(lambda text: re.search(r"^exitcode=\d+", text, re.MULTILINE), "the end of the program")
        code = re.search(r"^exitcode=(\d+)", shown, re.MULTILINE)
        assert code is not None
        return int(code[1]), shown[: code.start()]

    def program_pid(self) -> int:
        """The process id of the running program."""
        shell = self.tmux("display-message", "-p", "-t", "main", "#{pane_pid}").strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])


def has_tmux() -> bool:
    """Whether there is a tmux here."""
    return shutil.which("tmux") is not None


def processes(*words: str) -> list[int]:
    """The ids of the processes whose command line is these words."""
    wanted = [word.encode() for word in words]
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().split(b"\0")[:-1] == wanted:
                    found.append(int(entry.name))
    return found


def works(shown: str) -> bool:
    """Whether the screen says that something runs, or waits for an answer."""
    return "esc to " in shown or "● Waiting for you" in shown


def prompt_of(shown: str) -> str:
    """The lines below the transcript: the prompt and what is under it."""
    return "\n".join(shown.split("\n")[-9:])


def frame(shown: str) -> str:
    """A screen with a frame, for messages."""
    return "\n".join(f"| {row}" for row in shown.split("\n"))
