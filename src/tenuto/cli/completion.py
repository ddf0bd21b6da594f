"""Completion in the shell: what `tenuto completion SHELL` prints, and what answers when the shell asks.

The shell starts `tenuto` with `_ARGCOMPLETE` in its environment and the line so far in `COMP_LINE`. Whoever would parse
the words then answers with what fits instead (`argcomplete`), and the program ends.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from tenuto.cli.arguments import SUBCOMMANDS, build_parser
from tenuto.cli.completing import complete
from tenuto.cli.parsing import Parser, parse
from tenuto.exit_codes import OK
from tenuto.guard.terminal import write_text

SHELLS = ("bash", "zsh", "fish")
HOW = {
    "bash": 'eval "$(tenuto completion bash)"      # in ~/.bashrc',
    "zsh": 'eval "$(tenuto completion zsh)"       # in ~/.zshrc, below compinit',
    "fish": "tenuto completion fish | source       # in ~/.config/fish/config.fish",
}


def run_completion(arguments: tuple[str, ...], _home: Path, _environ: Mapping[str, str]) -> int:
    """Run `tenuto completion SHELL`; returns the exit code."""
    parser = Parser(
        prog="tenuto completion",
        description="Print what makes your shell complete the words behind tenuto.",
        epilog="\n".join(HOW.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that you use")
    parsed = parse(parser, arguments)
    if isinstance(parsed, int):
        return parsed
    from argcomplete.shell_integration import shellcode

    write_text(shellcode(["tenuto"], shell=parsed.shell))
    return OK


def answer_shell(home: Path, environ: Mapping[str, str]) -> int:
    """Answer a shell that asks what may stand next; returns the exit code."""
    from argcomplete.lexers import split_line

    _, _, _, words, _ = cast("tuple[str, str, str, list[str], int]", split_line(environ["COMP_LINE"], _point(environ)))
    name = words[1] if len(words) > 1 else ""
    if len(words) == 2 and (acts := _acts(name)):
        parser = Parser(prog=f"tenuto {name}")
        parser.add_argument("act", choices=acts)
        complete(parser)
    if name in SUBCOMMANDS:
        from tenuto.cli.start import find_subcommand

        return find_subcommand(name)(tuple(words[2:]), home, environ)  # the first parser that it asks answers
    parser = build_parser()
    if len(words) == 1:
        parser.add_argument("subcommand", nargs="?", choices=sorted(SUBCOMMANDS))
    complete(parser)
    return OK


def _acts(name: str) -> Sequence[str]:
    """Return the words of a subcommand that has a parser for each; none where one parser has them all."""
    match name:
        case "sessions":
            from tenuto.cli.sessions import COMMANDS, IMPORT

            return (*COMMANDS, IMPORT)
        case "trust":
            from tenuto.cli.trust import ACTS

            return ACTS
        case "prompt":
            return ("show",)
        case "eval":
            return ("compaction",)
        case _:
            return ()


def _point(environ: Mapping[str, str]) -> int:
    """Return where the cursor is, in characters; the shell counts bytes."""
    line = os.fsencode(environ["COMP_LINE"])
    point = environ.get("COMP_POINT", "")
    return len(os.fsdecode(line[: int(point)] if point.isdecimal() else line))
