"""Our reading of words against bash's own: whatever is understood is what a program gets."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from tenuto.guard.examine import examine_line
from tenuto.guard.readers.places import Place
from tenuto.guard.shell.braces import expand_braces
from tenuto.guard.shell.parse import read_line, simple_commands
from tenuto.guard.shell.syntax import Text, UnreadableError
from tests.examples import many_examples
from tests.guard.canary import make_workspace, rows, surroundings

_STRANGE = "ab x'\"\\$`#~{},*?[]!=;&|<>()-\n\t\u00a0\u0085\u2028\u200b\u3000éàＡѕ😀\x7f\r\x01"
_TEXTS = strategies.text(
    strategies.one_of(strategies.sampled_from(_STRANGE), strategies.characters(codec="utf-8")), max_size=8
)
_SHORT = strategies.text(strategies.sampled_from(_STRANGE), max_size=14)


def _backslashed(text: str) -> str:
    return "".join("'\n'" if char == "\n" else f"\\{char}" for char in text) or "''"


def _in_doubles(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in '"$`\\' else char for char in text)
    return f'"{escaped}"'


def _in_dollars(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in "'\\" else char for char in text)
    return f"$'{escaped}'"


_QUOTINGS = strategies.sampled_from([shlex.quote, _backslashed, _in_doubles, _in_dollars])
_WORDS = strategies.lists(
    strategies.lists(
        strategies.tuples(_TEXTS, _QUOTINGS).map(lambda pair: pair[1](pair[0])), min_size=1, max_size=3
    ).map("".join),
    min_size=1,
    max_size=4,
)


def _bash(line: str, cwd: Path) -> bytes:
    """Return what bash makes of a line, with no program to be found."""
    environ = {"PATH": "/nowhere", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout


@many_examples(suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(words=strategies.one_of(_WORDS, strategies.lists(_SHORT, min_size=1, max_size=3)))
def test_words_that_are_understood_are_what_bash_gives_a_program(words: list[str], tmp_path: Path) -> None:
    line = "printf '<%s>\\0' " + " ".join(words)
    if "\0" in line:
        return
    read = read_line(line)
    if read.problem:
        return
    commands = list(simple_commands(read.body))
    values = [word.value for word in commands[0].words]
    if len(commands) > 1 or commands[0].redirections or None in values:
        return
    expected = "".join(f"<{value}>\0" for value in values[2:] or [""]).encode()
    assert _bash(line, tmp_path) == expected


_BRACES = strategies.lists(
    strategies.sampled_from(
        [*"{},.ab01-_x'\"\\", "{a,b}", "{1..3}", "{c..a}", "{,x}", "..", "'{'", "$x", "{-1..1}", "{01..3}", "~"]
    ),
    min_size=1,
    max_size=9,
).map("".join)


@many_examples(suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(text=_BRACES)
def test_braces_become_the_words_that_bash_makes_of_them(text: str, tmp_path: Path) -> None:
    line = f"printf '<%s>\\0' {text}"
    read = read_line(line)
    commands = list(simple_commands(read.body))
    if read.problem or len(commands) != 1 or len(commands[0].words) != 3 or commands[0].words[2].has_tilde:
        return
    try:
        words = expand_braces(commands[0].words[2])
    except UnreadableError:
        return
    if not all(word.is_text and not word.has_tilde for word in words):
        return
    values = [
        word.text for word in words if word.text or any(isinstance(each, Text) and each.quoted for each in word.pieces)
    ]
    assert _bash(line, tmp_path) == "".join(f"<{value}>\0" for value in values or [""]).encode()


@many_examples()
@hypothesis.given(
    text=strategies.text(strategies.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20)
)
def test_what_is_quoted_is_understood(text: str) -> None:
    """Only what stands outside of quotes can be refused for its characters."""
    quoted = "'" + text.replace("'", "'\\''") + "'"
    read = read_line(f"printf %s {quoted}")
    assert not read.problem
    assert next(simple_commands(read.body)).words[2].value == text


@many_examples()
@hypothesis.given(text=_SHORT)
def test_what_bash_cannot_read_is_not_understood_either(text: str) -> None:
    if "\0" in text or read_line(text).problem:
        return
    done = subprocess.run(
        ["/bin/bash", "-n", "-c", f"\n{text}"], env={"LC_ALL": "C.UTF-8"}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return surroundings(make_workspace(tmp_path_factory.mktemp("quoted")))


_PLAIN_ROWS = [
    [word.value for word in commands[0].words]
    for row in rows()
    if row.verdict == "ask" and not (read := read_line(row.line)).problem
    for commands in [list(simple_commands(read.body))]
    if len(commands) == 1
    and read.body.items == tuple(commands)
    and not commands[0].redirections
    and not commands[0].assignments
    if commands[0].words and all(word.value is not None for word in commands[0].words)
]


@many_examples()
@hypothesis.given(data=strategies.data())
def test_no_quoting_makes_a_line_run_that_must_be_asked(place: Place, data: strategies.DataObject) -> None:
    values = data.draw(strategies.sampled_from(_PLAIN_ROWS))
    words = [data.draw(_QUOTINGS)(value or "") for value in values]
    before = data.draw(
        strategies.sampled_from(["", " ", "\t", "\n", "\\\n", "ls; ", "true && ", "pwd | ", "{ ", "if ls; then "])
    )
    after = {"{ ": "; }", "if ls; then ": "; fi"}.get(
        before, data.draw(strategies.sampled_from(["", " ", "\n", " # x", ";", " | cat"]))
    )
    assert not examine_line(f"{before}{' '.join(words)}{after}", place).reads


def test_there_are_rows_to_quote() -> None:
    assert len(_PLAIN_ROWS) > 200
    assert os.path.exists("/bin/bash")
