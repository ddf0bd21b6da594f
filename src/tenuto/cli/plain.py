"""The command lines that people type most, read without argparse: it takes 7 ms to import and to build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FLAGS = {
    "-p": "print_mode",
    "--print": "print_mode",
    "--json": "json",
    "-c": "continue_latest",
    "--continue": "continue_latest",
    "--fork": "fork",
    "--no-session": "no_session",
    "--inline": "inline",
    "--screen-reader": "screen_reader",
}
VALUES = {"--model": "model", "--mode": "mode", "--cwd": "cwd"}
RESUME = ("-r", "--resume")


def read_plain(arguments: Sequence[str], modes: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of the options as argparse would, `None` for what is for argparse to read or to refuse."""
    found: dict[str, Any] = {}
    prompt: list[str] = []
    words = list(reversed(arguments))
    while words:
        word = words.pop()
        value = words[-1] if words and words[-1] and not words[-1].startswith("-") else ""
        if word and not word.startswith("-"):
            prompt.append(word)
        elif word in FLAGS:
            found[FLAGS[word]] = True
        elif word in RESUME and (value or not words or words[-1]):
            found["resume"] = words.pop() if value else ""
        elif word in VALUES and value and (word != "--mode" or value in modes):
            found[VALUES[word]] = words.pop()
        else:
            return None
    return found | {"prompt": prompt}
