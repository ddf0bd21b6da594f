"""A warm start is a real one but for the time that it takes."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.warm import IS_POSSIBLE, NOT_FORKED, PYTHON, ROOT, SOURCES, TENUTO

pytestmark = [pytest.mark.matrix, pytest.mark.skipif(not IS_POSSIBLE, reason="all starts are real here")]

PROBE = """
import json, locale, os, random, resource, signal, sys, time
streams = [
    [each.name, each.mode, each.encoding, each.errors, each.line_buffering, each.write_through, each.newlines,
     each.buffer.name, each.buffer.mode, raw.name, raw.mode, raw.closefd, each.isatty(),
     type(each.buffer).__name__, each is other]
    for each, other in zip((sys.stdin, sys.stdout, sys.stderr), (sys.__stdin__, sys.__stdout__, sys.__stderr__))
    for raw in [getattr(each.buffer, "raw", each.buffer)]
]
def is_open(number):
    try:
        return os.fstat(number) and os.get_inheritable(number)
    except OSError:
        return None
names = [signal.getsignal(each) for each in sorted(signal.valid_signals())]
facts = {
    "environ": dict(os.environ),
    "words": [sys.argv, sys.orig_argv, sys.executable, sys.flags, __name__],
    "path": sys.path,
    "place": os.getcwd(),
    "umask": os.umask(0),
    "parent": os.getppid(),
    "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "session": os.getsid(os.getppid()) == os.getsid(0),
    "user": [os.getuid(), os.geteuid(), os.getgroups()],
    "signals": [getattr(each, "__name__", None) or int(each) for each in names],
    "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
    "status": [line for line in open("/proc/self/status") if line.startswith(("SigB", "SigI", "SigC", "Threads"))],
    "descriptors": [[number, is_open(number)] for number in range(64) if is_open(number) is not None],
    "limits": [resource.getrlimit(each) for each in range(10)],
    "nice": [os.nice(0), os.sched_getscheduler(0)],
    "streams": streams,
    "locale": [locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding(),
               sys.getfilesystemencodeerrors(), sys.getdefaultencoding()],
    "time": [time.tzname, time.localtime(0).tm_hour],
    "gc": __import__("gc").isenabled(),
}
print(json.dumps(facts), file=sys.stderr)
"""
"""What a program can know of how it was started."""


def facts_of(program: str, tmp_path: Path, **options: object) -> dict[str, Any]:
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
    words = [program, "-c", PROBE, "one", "--two", "dr\udcffei"]
    done = subprocess.run(words, check=True, timeout=60, **{**given, **options})
    facts = json.loads(done.stderr)
    assert facts.pop("parent") == os.getpid()
    for name in ("LINES", "COLUMNS"):  # readline, in a test, may give them to what it starts, past `os.environ`
        facts["environ"].pop(name, None)
    return facts


PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.mark.parametrize(
    "options",
    [
        {"env": PLAIN},
        {"env": {}},
        {"env": {**PLAIN, "LANG": "C.UTF-8", "TZ": "Asia/Tokyo"}},
        {"env": {**PLAIN, "LC_ALL": "C"}},
        {"env": {**PLAIN, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}},
        pytest.param({"env": {**PLAIN, "LC_ALL": "POSIX", "LANG": "C.UTF-8"}}, marks=pytest.mark.full),
        pytest.param({"env": {**PLAIN, "LC_CTYPE": "C.UTF-8", "LANG": ""}}, marks=pytest.mark.full),
        {"env": {**PLAIN, "LANG": "xx_YY.UTF-8"}},
        {"env": {**PLAIN, "PYTHONPATH": str(SOURCES)}},
        {"env": {**PLAIN, "PYTHONPATH": "/nowhere", "PYTHONIOENCODING": "latin-1:replace"}},
        {"env": {b"PATH": b"/bin", "ODD": "\udcff=\n"}},
        {"env": PLAIN, "start_new_session": True},
        {"env": PLAIN, "process_group": 0, "umask": 0o027},
        {"env": PLAIN, "restore_signals": False},
        {"env": PLAIN, "cwd": "/"},
        {"env": PLAIN, "cwd": None, "stdin": None, "stdout": None},
        {"env": PLAIN, "stdin": subprocess.PIPE, "stderr": subprocess.PIPE},
        {},
    ],
)
def test_a_program_cannot_tell_a_warm_start_from_a_real_one(tmp_path, options):
    assert facts_of(PYTHON, tmp_path, **options) == facts_of(sys.executable, tmp_path, **options)


def test_what_is_handed_down_has_its_number(tmp_path):
    first, other = os.pipe()
    try:
        for number in (3, 5, 40):
            os.dup2(first, number + 20)
        options = {"env": PLAIN, "pass_fds": [first, other, 23, 60]}
        assert facts_of(PYTHON, tmp_path, **options) == facts_of(sys.executable, tmp_path, **options)
    finally:
        for each in (first, other, 23, 25, 60):
            os.close(each)


def test_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    try:
        options = {"env": PLAIN, "stdin": theirs, "stdout": theirs}
        assert facts_of(PYTHON, tmp_path, **options) == facts_of(sys.executable, tmp_path, **options)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("umask", [0, 0o077])
def test_what_the_test_itself_has_changed_is_handed_down(tmp_path, umask):
    before = os.umask(umask)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGUSR2, lambda *_: None)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        warm, real = (facts_of(each, tmp_path, env=PLAIN) for each in (PYTHON, sys.executable))
    finally:
        os.umask(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for each in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(each, signal.SIG_DFL)
    assert warm == real and warm["umask"] == umask


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    options = {"env": PLAIN, "stdin": subprocess.DEVNULL, **options}
    return subprocess.run([PYTHON, *words], capture_output=True, text=True, check=False, timeout=60, **options)


IS_WARM = "import sys; print('tenuto.core.runtime' in sys.modules)"


def test_it_is_warm_and_is_what_the_command_is(tmp_path):
    assert run("-c", IS_WARM).stdout == "True\n"
    home = {**PLAIN, "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    words = ("-p", "list", "--model", "offline/tenuto", "--json")
    real, warm = (
        subprocess.run([*program, *words], env=home, cwd=tmp_path, stdin=-3, capture_output=True, check=True, text=True)
        for program in ([sys.executable, "-m", "tenuto"], TENUTO)
    )
    kinds = [[json.loads(line)["event"] for line in done.stdout.splitlines()] for done in (real, warm)]
    kinds = [[one for one in each if not one.endswith("_delta")] for each in kinds]  # how many is a matter of speed
    assert kinds[0] == kinds[1] and kinds[0][-1] == "task_settled"


@pytest.mark.parametrize(
    "options",
    [
        {"preexec_fn": lambda: os.nice(0)},
        {"env": {**PLAIN, "PYTHONPATH": "/nowhere"}},
        {"env": {**PLAIN, "PYTHONHASHSEED": "0"}},
        {"close_fds": False},
        {"user": os.getuid()},
    ],
)
def test_what_a_fork_cannot_have_is_a_real_start(options):
    assert run("-c", IS_WARM, **options).stdout == "False\n"


def test_in_a_fork_of_the_test_a_start_is_real():
    code = "from tests.warm import PYTHON; import os, subprocess\n"
    code += f"run = lambda: subprocess.run([PYTHON, '-c', {IS_WARM!r}])\n"
    code += "run()\nif os.fork() == 0:\n  run()\n  os._exit(0)\nos.wait()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=PLAIN)
    assert done.stdout == "True\nFalse\n"


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("import os; os._exit(7)", 7),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('no')", 1),
        ("1 / 0", 1),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM),
        ("import signal; signal.raise_signal(2)", -signal.SIGINT),
        ("import sys; sys.stdout.write('x' * 100_000); sys.stdout.flush(); import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_the_end_is_the_programs_own(code, ends):
    real = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    warm = run("-c", code)
    assert warm.returncode == real.returncode == ends
    assert warm.stdout == real.stdout
    assert warm.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_what_runs_can_be_signalled_and_waited_for():
    with subprocess.Popen(
        [PYTHON, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PLAIN
    ) as program:
        assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.05)
        assert os.path.exists(f"/proc/{program.pid}/stat")
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait(60) == -signal.SIGKILL
    with pytest.raises(ChildProcessError):
        os.waitpid(program.pid, 0)


def test_a_signal_right_after_the_start_is_not_lost():
    for _ in range(20):
        with subprocess.Popen(
            [PYTHON, "-c", "import time; time.sleep(60)"], stderr=subprocess.DEVNULL, env=PLAIN
        ) as program:
            program.send_signal(signal.SIGINT)
            assert program.wait(60) == -signal.SIGINT


def test_a_directory_that_is_not_there_is_the_error_that_it_always_is(tmp_path):
    with pytest.raises(FileNotFoundError) as warm:
        run("-c", "pass", cwd=tmp_path / "gone")
    with pytest.raises(FileNotFoundError) as real:
        subprocess.run([sys.executable, "-c", "pass"], cwd=tmp_path / "gone", check=False)
    assert str(warm.value) == str(real.value)
    assert run("-c", "print(1)").stdout == "1\n"


def test_nothing_of_one_program_is_in_the_next(tmp_path):
    change = "import os, sys, time, builtins, json; os.environ['LEFT'] = 'x'; os.chdir('/'); builtins.left = 1; "
    change += "json.left = 1; sys.path.append('left'); open('/dev/null'); os.umask(0o777); print(time.tzname)"
    assert run("-c", change, env={**PLAIN, "TZ": "Asia/Tokyo"}).stdout == "('JST', 'JST')\n"
    look = "import os, sys, time, json; print(os.environ.get('LEFT'), os.getcwd(), 'left' in dir(__builtins__), "
    look += "hasattr(json, 'left'), 'left' in sys.path, time.tzname)"
    said = run("-c", look, cwd=tmp_path, env={**PLAIN, "TZ": "UTC"}).stdout
    assert said == f"None {tmp_path} False False False ('UTC', 'UTC')\n"


def test_each_has_chances_of_its_own():
    code = "import random, tempfile, uuid; print(random.random(), next(tempfile._get_candidate_names()), uuid.uuid4())"
    first, other = (run("-c", code).stdout.split() for _ in range(2))
    assert not set(first) & set(other)


async def test_asyncio_starts_and_waits_as_well():
    program = await asyncio.create_subprocess_exec(
        PYTHON, "-c", f"{IS_WARM}; print(input())", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PLAIN
    )
    out, _ = await asyncio.wait_for(program.communicate(b"hello\n"), 60)
    assert (program.returncode, out) == (0, b"True\nhello\n")


def test_threads_start_side_by_side():
    async def all_of_them() -> list[str]:
        runs = [asyncio.to_thread(run, "-c", f"print({number})") for number in range(20)]
        return [done.stdout for done in await asyncio.gather(*runs)]

    assert asyncio.run(all_of_them()) == [f"{number}\n" for number in range(20)]


def test_the_forker_ends_with_whoever_started_it():
    code = "from tests.warm import PYTHON, _forkers; import os, subprocess\nsubprocess.run([PYTHON, '-c', ''])\n"
    code += "print(*[each._process.pid for each in _forkers.values()], flush=True)\nos.kill(os.getpid(), 9)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, env=PLAIN
    )
    assert done.returncode == -9
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{int(done.stdout)}/fd/0"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


READ = """
import os, sys
names = set()
real = type(os.environ).__getitem__
def look(self, name):
    names.add(name)
    return real(self, name)
type(os.environ).__getitem__ = look
type(os.environ).__contains__ = lambda self, name: names.add(name) or self.encodekey(name) in self._data
sys.path.insert(0, sys.argv[1])
import forker
forker.import_all()
print(*sorted(names))
"""
KNOWN = {"LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"}
"""In these a library says its own words, which is asked again for each."""


def test_imports_read_no_variable_that_a_test_could_set():
    """Or it would have the forker's, which has none."""
    done = subprocess.run(
        [sys.executable, "-c", READ, Path(__file__).parent], capture_output=True, text=True, check=True, env=PLAIN
    )
    read = {name for name in done.stdout.split() if not NOT_FORKED.match(name.removeprefix("_").encode())}
    assert read <= KNOWN | {"HOME"}, "sysconfig asks for HOME, for a place where no package of ours is"
