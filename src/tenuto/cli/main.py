"""The `tenuto` command. Answers `--version` with almost nothing imported; everything else is imported when needed."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit: 0 settled, 1 failed, 2 bad usage, 130 interrupted."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from tenuto.version import __version__

        print(f"tenuto {__version__}")  # noqa: T201
        return
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    _leave(code)


def _leave(code: int) -> None:
    """Exit at once: everything is on disk, and taking the interpreter apart would cost 15 ms."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        raise SystemExit(code) from None
    os._exit(code)


def _run(arguments: list[str]) -> int:
    from tenuto.cli.arguments import parse_arguments

    options = parse_arguments(arguments)
    if isinstance(options, int):
        return options
    from tenuto.cli.start import run

    return run(options)
