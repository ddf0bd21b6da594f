"""What all tests share."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
from collections.abc import Generator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import NoReturn

import hypothesis
import pytest

from tenuto.guard.sandbox.machine import find_machine
from tenuto.import_tricks import import_without

FIXTURES = Path(__file__).parent / "fixtures"
collect_ignore = ["fixtures"]

# For a format that no test checks it would build grammars: 0.8 s of each worker.
import_without("jsonschema", "rfc3987_syntax")

# Hypothesis and httpx read these; a proxy of the machine must not get between a test and its own server.
for _name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(_name, None)

# What the screens paint in does not depend on the terminal that the tests are started from.
os.environ["COLORTERM"] = "truecolor"

# Mode auto asks where nothing holds commands: most tests want it to run them, so there they do without.
if not find_machine().kind:
    os.environ["TENUTO_SANDBOX__ENABLED"] = "false"

# How many examples a property is tried with stands here: few in every run, which begins with others each time, and many
# with `./scripts/test --full`. Where one example is a whole session, `tests/examples.py` takes fewer.
# An example that takes long on a busy machine is no fault: no test measures time.
for _profile, _examples in (("every", 20), ("full", 200)):
    hypothesis.settings.register_profile(
        _profile, max_examples=_examples, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
hypothesis.settings.load_profile("every")


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: unlike `SIG_IGN` this is not handed down to a program that a test starts."""


def pytest_runtest_setup() -> None:
    """Have what tests start hear of these, though the tests were started by nohup or in the background.

    A command that ran in this process leaves SIGHUP ignored at its end (`tenuto.ending`), too.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, _pass)


@pytest.fixture
def sample_repo(tmp_path: Path) -> Path:
    """A small Python repository with one failing test (`shop/price.py`: the discount is taken off twice)."""
    target = tmp_path / "sample_repo"
    shutil.copytree(FIXTURES / "sample_repo", target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


TASK_STARTS = ("lazy", "eager") if hasattr(asyncio, "eager_task_factory") else ("lazy",)


@pytest.fixture(params=TASK_STARTS)
async def task_start(request: pytest.FixtureRequest) -> str:
    """When the loop's tasks start: later, or at once as on Textual's loop (Python 3.12 and newer)."""
    if request.param == "eager":
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # pyright: ignore
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each of xdist's workers import from another place on: what one has compiled, the others find.

    Without bytecode, as after a checkout, all of them would compile all modules of the tests at the same time.
    """
    given: dict[str, object] = getattr(session.config, "workerinput", {})
    if not given or session.config.args != session.config.getini("testpaths"):
        return
    place, count = int(str(given["workerid"]).removeprefix("gw")), int(str(given["workercount"]))
    names = sorted(
        ".".join(file.relative_to(FIXTURES.parents[1]).with_suffix("").parts)
        for file in FIXTURES.parent.rglob("test_*.py")
        if FIXTURES not in file.parents
    )
    begin = len(names) * place // count
    for name in [*names[begin:], *names[:begin]]:
        # What is wrong with a module is said when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start programs in a terminal wait more than they work: begin with them, each beside one that works.

    Left to themselves they would come last, as they have few tests, and the processors would have nothing to do.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [tests for tests in files.values() if any(test.get_closest_marker("terminal") for test in tests)]
    working = [tests for tests in files.values() if not any(test.get_closest_marker("terminal") for test in tests)]
    items[:] = [test for pair in zip_longest(waiting, working, fillvalue=[]) for tests in pair for test in tests]


PROGRAMS = ("git", "rg", "tmux")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Skip, and say so, what fails because a program that it starts is not installed."""
    try:
        return (yield)
    except FileNotFoundError as error:
        return _skip_without_program(error)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """The same for fixtures."""
    try:
        return (yield)
    except FileNotFoundError as error:
        return _skip_without_program(error)


def _skip_without_program(error: FileNotFoundError) -> NoReturn:
    if error.filename in PROGRAMS and shutil.which(error.filename) is None:
        pytest.skip(f"{error.filename} is not installed")
    raise error
