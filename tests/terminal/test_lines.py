"""A terminal that cannot move its cursor: every byte is text, nothing is drawn, and a whole job can be done."""

from __future__ import annotations

import re
import time

import pytest

from tests.examples import one_of
from tests.server import Call, Reply, Request
from tests.server.reply import AnyReply
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import PATIENCE
from tests.terminal.test_compaction import WINDOW, at_once, counting

pytestmark = pytest.mark.terminal
CONTROLS = re.compile(r"[^\t\r\n -~\u00a0-\U0010ffff]")
DRAWN = re.compile(r"[\u2500-\u25ff\u2800-\u28ff]")
TABLE = "| part | price |\n|---|---|\n| nut | 3 |\n\n```sh\nls\n```\n\n---\n\nThe end."


def script(request: Request) -> AnyReply:
    if said(request) == "make it" and not any(item.kind == "result" for item in request.turn):
        return Reply("I make it.", tool_calls=[Call("bash", {"command": "touch made-by-the-model"})])
    return Reply(TABLE) if said(request) == "show a table" else counting(at_once)(request)


class Lines:
    """The program on such a terminal; each line is typed once what it answers has come."""

    def __init__(self, place: Workplace, **environ: str) -> None:
        server = place.serve(script, window=WINDOW)
        self.terminal = PseudoTerminal(place.work, place.home, {**server.environ(), **environ}, "--model", MODEL)
        self.seen = 0

    def wait(self, *texts: str, quiet: float = 0.3) -> str:
        """Wait until these texts have come since the last line, and then for the program to be quiet."""
        deadline = time.monotonic() + PATIENCE
        while not all(text in self.text[self.seen :] for text in texts):
            assert time.monotonic() < deadline, f"never came: {texts}\n{self.text[self.seen :]}"
            self.terminal.read()
        self.terminal.read_until_quiet(quiet)
        return self.text[self.seen :]

    def type(self, line: str) -> None:
        self.seen = len(self.text)
        self.terminal.write(line.encode())

    @property
    def text(self) -> str:
        return self.terminal.output.decode("utf-8", "replace")


@pytest.mark.parametrize("name", one_of(["dumb", "unknown"]))
def test_a_job_with_an_approval_and_a_compaction_is_text_alone(place: Workplace, name: str) -> None:
    lines = Lines(place, TERM=name)
    try:
        lines.wait("Type a prompt", "> ")
        lines.type("make it\n")
        lines.wait("Allow", "touch made-by-the-model", "Answer with a number:", quiet=1.5)
        lines.type("1\n")
        lines.wait("Answer to make it.", "\r\n> ")
        assert (place.work / "made-by-the-model").exists()
        lines.type("show a table\n")
        lines.wait("nut", "The end.", "\r\n> ")
        lines.type("/mode auto\n")
        lines.wait("\r\n> ")
        for prompt in ("count 1", "count 2", "count 3"):
            lines.type(f"{prompt}\n")
            lines.wait(f"Answer to {prompt}.", "\r\n> ")
        lines.type("/compact\n")
        lines.wait("compacting", "Compacted", "\r\n> ")
        lines.type("/context\n")
        lines.wait("\r\n> ")
        lines.type("/exit\n")
        lines.wait("tenuto --resume")
        assert CONTROLS.findall(lines.text) == []
        assert DRAWN.findall(lines.text) == []
    finally:
        lines.terminal.close()


def test_a_command_closes_the_list_that_is_open_and_ctrl_c_has_a_line_of_its_own(place: Workplace) -> None:
    lines = Lines(place, TERM="dumb")
    try:
        lines.wait("> ")
        lines.type("/theme\n")
        lines.wait("A number takes it")
        lines.type("/mode auto\n")
        shown = lines.wait("\r\n> ")
        assert "Nothing matches" not in shown
        lines.type("/mode\n")
        lines.wait("A number takes it")
        lines.type("/nothing-like-it\n")
        lines.wait("Nothing matches")
        lines.type("\n")
        lines.wait("> ")
        lines.type("\x03")
        assert "^C\r\nPress Ctrl+C again" in lines.wait("again to quit")
    finally:
        lines.terminal.close()


def test_what_keys_do_to_a_row_stands_behind_its_number(place: Workplace) -> None:
    other = place.folder / "other"
    other.mkdir()
    lines = Lines(place, TERM="dumb")
    try:
        lines.wait("> ")
        for line in ("first job", f"/new {other}", "other job", "/new"):
            lines.type(f"{line}\n")
            lines.wait("\r\n> ")
        lines.type("/resume\n")
        shown = lines.wait("A number takes it")
        assert "1. other job" in shown
        assert "2. " not in shown, "the other one is elsewhere"
        lines.type("+\n")
        assert {"first job", "other job"} <= set(
            re.findall(r"\d\. (\w+ job)", lines.wait("These are: all directories"))
        )
        lines.type("1 rename the second\n")
        lines.wait("to “the second”", "\r\n> ")
        lines.type("/resume\n")
        lines.wait("1. the second", "A number takes it")
        lines.type("1 delete\n")
        lines.wait("Delete “the second”?", "2. yes")
        lines.type("2\n")
        lines.wait("to the bin", "\r\n> ")
        lines.type("/resume\n")
        lines.wait("1. first job")
    finally:
        lines.terminal.close()


@pytest.mark.parametrize(("setting", "rings"), [("", True), ('[ui]\nnotifications = "off"\n', False)])
def test_a_question_rings_and_what_holds_from_now_on_is_said(place: Workplace, setting: str, rings: bool) -> None:
    place.settings(setting)
    lines = Lines(place, ACCESSIBLE="1")
    try:
        lines.wait(f"(model {MODEL}, mode ask)", "> ")
        lines.type("make it\n")
        lines.wait("Answer with a number:", quiet=1.5)
        assert CONTROLS.findall(lines.text) == (["\a"] if rings else [])
        lines.type("1\n")
        lines.wait("Answer to make it.", "\r\n> ")
        lines.type("/mode\n")
        lines.wait("A number takes it")
        lines.type("3\n")
        assert "(mode auto)" in lines.wait("\r\n> ")
    finally:
        lines.terminal.close()


def test_r099_a_paste_of_lines_is_one_prompt_and_waits_for_enter(place: Workplace) -> None:
    lines = Lines(place, TERM="dumb")
    assert place.server is not None
    pasted = "\n".join(f"line {number} of what was pasted here" for number in range(30))
    try:
        lines.wait("> ")
        lines.type(pasted)
        lines.wait("29 lines were pasted", "\r\n> ")
        assert place.server.requests == []
        lines.type(" and typed\n")
        lines.wait("Answer to", "\r\n> ")
        assert said(place.server.requests[-1]) == f"{pasted} and typed"
        lines.type(f"{pasted}\n")
        lines.wait("30 lines were pasted")
        lines.type("\n")
        lines.wait("Answer to", "\r\n> ")
        assert said(place.server.requests[-1]) == pasted
    finally:
        lines.terminal.close()


def test_a_line_that_the_terminal_has_cut_is_not_sent_as_if_it_were_whole(place: Workplace) -> None:
    lines = Lines(place, TERM="dumb")
    assert place.server is not None
    try:
        lines.wait("> ")
        lines.type("x" * 6_000 + "\n")
        lines.wait("The terminal keeps 4,095 bytes", "\r\n> ")
        assert place.server.requests == []
        lines.type("something else\n")
        lines.wait("Answer to something else.", "\r\n> ")
        lines.type("\n")
        lines.wait("Answer to", "\r\n> ")
        assert said(place.server.requests[-1]) == "x" * 4_095
    finally:
        lines.terminal.close()
