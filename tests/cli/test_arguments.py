"""The quick reading of the command line is argparse's, or none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.cli.arguments import MODES, Options, build_parser, parse_arguments, read_plain

OPTIONS = (
    "-p --print --json -c --continue -r --resume --fork --model --mode --cwd --no-session --inline --screen-reader"
)
OTHERS = "-V --version -h --help - -- -1 --model=x -rID -cp --cont ask auto nonsense . fix it -x"
WORDS = st.sampled_from([*OPTIONS.split(), *OTHERS.split(), "", "two words", "-two words"])


@given(st.lists(WORDS, max_size=7))
@example(["-r", ""])
@example(["--model", "-"])
@example(["fix", "--resume", "it", "now"])
def test_what_is_read_quickly_is_what_argparse_reads(words: list[str]) -> None:
    quick = read_plain(words, MODES)
    if quick is not None:
        whole = vars(build_parser().parse_intermixed_args(words))
        assert whole == vars(build_parser().parse_intermixed_args([])) | quick


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("-p hello --model a/b --mode auto", Options(prompt="hello", print_mode=True, model="a/b", mode="auto")),
        ("--json fix it", Options(prompt="fix it", print_mode=True, json=True)),
        ("-c --inline", Options(continue_latest=True, inline=True)),
        ("-r", Options(resume="")),
        ("--resume 4fe1 --fork go on", Options(resume="4fe1", fork=True, prompt="go on")),
        ("", Options()),
    ],
)
def test_the_usual_lines_are_read_quickly(line: str, options: Options) -> None:
    assert read_plain(line.split(), MODES) is not None
    assert parse_arguments(line.split()) == options


def test_the_usual_lines_need_no_argparse() -> None:
    code = (
        "import sys; from tenuto.cli.arguments import parse_arguments\n"
        "parse_arguments(['-p', 'hello', '--model', 'a/b'])\n"
        "assert not {'argparse', 'gettext', 'shutil'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_mistyped_mode_is_told_with_those_that_there_are_and_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments(["-p", "hello", "--mode", "paln"]) == 2
    said = capsys.readouterr().err
    assert "--mode: “paln” is none of ask, edits, auto, plan; did you mean plan?" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("word", ["confg", "sesions", "docter", "model"])
def test_a_lone_word_that_is_nearly_a_subcommand_is_not_sent(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments([word]) == 2
    said = capsys.readouterr().err
    assert f"{word} is no subcommand; did you mean " in said
    assert f"To send it as a prompt: tenuto -- {word}" in said
    assert parse_arguments(["--", word]) == Options(prompt=word)


@pytest.mark.parametrize(
    "line", [["hello"], ["tests"], ["Model"], ["confg please"], ["confg", "please"], ["-p", "confg"]]
)
def test_other_prompts_are_no_slips(line: list[str]) -> None:
    options = parse_arguments(line)
    assert isinstance(options, Options)
    assert options.prompt == " ".join(word for word in line if word != "-p")
