"""The `tenuto` command. Answers `--version` with almost nothing imported; everything else is imported when needed.

On a terminal the first frame is painted, and keys are echoed, before anything is imported (DESIGN section 9).
"""

from __future__ import annotations

import gc
import os
import sys

from tenuto.exit_codes import BAD_USAGE, INTERRUPTED
from tenuto.last_acts import do_last_acts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
    from typing import NoReturn

    from tenuto.tui.first_paint.reader import EarlyReader
else:
    import _signal  # `signal` takes 3 ms to import

GC_WHILE_IMPORTING = (100_000, 20, 50)
"""Imports make many objects and no garbage: at its usual pace the collector would cost 10 ms of the start.

What goes on for longer sets its own pace (`heap.py`).
"""


def main() -> None:
    """Run the command line and exit: 0 settled, 1 failed, 2 bad usage, 130 interrupted."""
    if sys.platform == "win32":
        sys.exit(_say_unsupported())
    if _signal.getsignal(_signal.SIGINT) == _signal.default_int_handler:  # else our parent process has it ignored
        _signal.signal(_signal.SIGINT, _end_at_once)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_descriptors()
    if sys.stdout is not None and sys.stdout.isatty():  # pyright: ignore[reportUnnecessaryComparison] - it was closed
        code = _answer(sys.argv[1:])
    else:
        from tenuto.cli.output import watch_output

        code = watch_output(lambda: _answer(sys.argv[1:]))
    _leave(code)


def _say_unsupported() -> int:
    line = "tenuto: Windows is not supported; Tenuto runs in WSL, see https://learn.microsoft.com/windows/wsl"
    print(line, file=sys.stderr)  # noqa: T201
    return BAD_USAGE


def _answer(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from tenuto.version import __version__

        print(f"tenuto {__version__}")  # noqa: T201
        return 0
    if "_ARGCOMPLETE" in os.environ:
        from tenuto.cli.completion import answer_shell
        from tenuto.config.sources import home_directory

        return answer_shell(home_directory(os.environ), os.environ)
    gc.set_threshold(*GC_WHILE_IMPORTING)
    return _run(arguments)


def _end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """End a program that is still starting. Whoever has something to end in order hears of signals itself.

    A `KeyboardInterrupt` would not do: raised in a callback of an import Python drops it, in a class body 3.11 makes
    a `RuntimeError` of it, and a library may take it for a module that is not there.
    """
    do_last_acts()
    os._exit(INTERRUPTED)


def _fill_descriptors() -> None:
    """Where descriptors 0 to 2 were closed nobody is to get them for a file of its own: others would write into it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest one that is free
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = os.fdopen(2, "w")


def _leave(code: int) -> None:
    """Exit at once: everything is on disk, and taking the interpreter apart would cost 15 ms."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison] - it was closed
                stream.flush()
    except (OSError, ValueError):
        code = code or 1
    os._exit(code)


def _run(arguments: list[str]) -> int:
    from tenuto.tui.first_paint.decide import choose_front_end, is_terminal_ready, wanted_mode

    front_end = choose_front_end(arguments, os.environ)
    if not front_end or not is_terminal_ready(os.environ):
        return _run_program(arguments, None)
    from tenuto.tui.first_paint.reader import begin_early

    early = begin_early(front_end, wanted_mode(arguments, os.environ))
    try:
        return _run_program(arguments, early)
    finally:
        if early is not None:
            early.close()


def _run_program(arguments: list[str], early: EarlyReader | None) -> int:
    from tenuto.cli.output import shield_errors

    shield_errors()
    from tenuto.cli.arguments import parse_arguments

    options = parse_arguments(arguments)
    if isinstance(options, int):
        return options
    from tenuto.cli.start import run

    return run(options, early)
