"""Modes, owners, times, attributes, and other processes: Landlock has no right for them, so a supervisor is asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tenuto.guard.sandbox import landlock, machine
from tenuto.tool.process.process import Collector, start_command
from tests.guard.sandbox.places import KINDS, Places, need, places

RAW = """
import ctypes, os, sys
words = []
for place, word in enumerate(sys.argv[2:]):
    if word.startswith("@"):
        words.append(ctypes.create_string_buffer(int(word[1:])))
    elif place == 0 and word.startswith("/"):
        words.append(os.open(word, os.O_PATH))
    else:
        words.append(int(word, 0) if word.lstrip("-")[:1].isdigit() else word.encode())
libc = ctypes.CDLL(None, use_errno=True)
done = libc.syscall(int(sys.argv[1]), *words)
raise SystemExit(done and os.strerror(ctypes.get_errno()))
"""
"""Makes one system call: a path in the first place is opened, `@N` is a buffer of zeros."""
RAW_LINES = (
    "raw.py 452 -100 $OUT/keep 0 0",
    "raw.py 452 -100 $OUT/keep 0 0x100",
    "raw.py 452 -100 link/keep 0 0",
    "raw.py 452 $OUT/keep '' 0 0x1000",
    "raw.py 452 $OUT keep 0 0",
    "raw.py 463 -100 $OUT/keep 0 user.x @16 16",
    "raw.py 463 $OUT/keep '' 0x1000 user.x @16 16",
    "raw.py 466 -100 $OUT/keep 0 user.there",
    "raw.py 469 -100 $OUT/keep @24 24 0",
)


@pytest.mark.parametrize("kind", KINDS)
async def test_s8_calls_that_only_new_kernels_have_change_nothing_outside(kind):
    with places(kind) as made:
        (made.work / "raw.py").write_text(RAW)
        before = made.outer()
        for line in RAW_LINES:
            result, text = await made.run(f"python3 {line}")
            assert result.is_error, line
            assert made.outer() == before, line
            if kind == "landlock" and " 469 " not in line:
                assert "The sandbox blocked this" in text, line


RACE = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
inside, outside = os.fsencode(os.path.abspath("keep")), os.fsencode(os.environ["OUT"] + "/keep")
size = max(len(inside), len(outside)) + 1
path = ctypes.create_string_buffer(inside, size)
images = [ctypes.create_string_buffer(one, size) for one in (inside, outside)]
going = True

def swap_bytes():
    while going:
        for image in images:
            ctypes.memmove(path, image, size)

def swap_links():
    os.mkdir("a"), os.symlink(os.environ["OUT"], "b")
    open("a/keep", "w").close()
    while going:
        for one, other in (("a", "c"), ("b", "a"), ("a", "b"), ("c", "a")):
            os.rename(one, other)

threads = [threading.Thread(target=one) for one in (swap_bytes, swap_links)]
for thread in threads:
    thread.start()
done = {True: 0, False: 0}
for number in range(600):
    done[libc.chmod(path, 0o600 + number % 8) == 0] += 1
    done[libc.chmod(b"a/keep", 0o600 + number % 8) == 0] += 1
    libc.utimensat(-100, path, None, 0)
going = False
print(sorted(done.items()))
"""


@pytest.mark.parametrize("kind", KINDS)
async def test_s8_a_path_that_changes_between_the_check_and_the_use_leads_nowhere(kind):
    with places(kind) as made:
        (made.work / "race.py").write_text(RACE)
        before = made.outer()
        result, text = await made.run("python3 race.py")
        assert not result.is_error, text
        assert made.outer() == before


async def test_what_the_supervisor_refused_is_told_where_the_program_says_nothing():
    with places("landlock") as made:
        result, text = await made.run("python3 -c \"import ctypes; ctypes.CDLL(None).chmod(b'$OUT/keep', 0)\"")
        assert not result.is_error
        assert "The sandbox blocked this" in text
        assert f"{made.outside}/keep" in text
        _, text = await made.run("chmod 600 keep")
        assert "sandbox" not in text


@pytest.mark.parametrize("kind", KINDS)
async def test_protected_and_hidden_places_keep_their_modes_in_the_workspace_too(kind):
    with places(kind) as made:
        before = made.inner()
        for line in ("chmod 777 AGENTS.md", "touch .git/config", "chmod 700 .vscode", "chmod 600 .github/workflows/*"):
            result, text = await made.run(line)
            assert result.is_error, text
            assert made.inner() == before, line


NAMES = ("file", "folder", "folder/inner", "to-file", "to-folder", "nowhere", "loop", "missing", "file/", "to-file/")
NAMES += ("./folder/../file", "", "x" * 300, "folder/inner/deep", "to-folder/inner", "HERE/file", "HERE/to-file")
MODES = st.integers(0, 0o777).map(lambda mode: mode | 0o700)  # whoever is not root goes on into the folder
TIMES = st.tuples(st.integers(0, 2_000_000_000), st.sampled_from([0, 5, 999_999_999, 1_000_000_000, 0x3FFFFFFE]))
NAME = st.sampled_from(NAMES)
CALL = st.one_of(
    st.tuples(st.sampled_from(["chmod", "fchmod", "chmod of a folder's", "chmod by number"]), NAME, MODES),
    st.tuples(st.just("fchmodat2"), NAME, MODES, st.sampled_from([0, 0x100, 0x1000, 0x1100, 0x10000])),
    st.tuples(st.sampled_from(["chown", "lchown", "fchown"]), NAME, st.booleans(), st.booleans()),
    st.tuples(st.just("utimensat"), NAME, TIMES, TIMES, st.sampled_from([0, 0x100, 0x1000])),
    st.tuples(st.sampled_from(["futimens", "utimes"]), NAME, TIMES, TIMES),
    st.tuples(st.just("setxattr"), NAME, st.sampled_from(["user.a", "user.b", "", "odd"]), st.sampled_from([0, 1, 2])),
    st.tuples(st.sampled_from(["removexattr", "lremovexattr"]), NAME, st.sampled_from(["user.a", "user.b", "none"])),
    st.tuples(st.just("nothing"), st.sampled_from(["chmod", "chown", "utimensat", "setxattr"])),
)
CALLS = r"""
import ctypes, json, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
top = os.path.abspath(sys.argv[1])
os.mkdir(top), os.chdir(top)
os.makedirs("folder/inner/deep")
open("file", "w").close()
for name, target in (("to-file", "file"), ("to-folder", "folder"), ("nowhere", "missing"), ("loop", "loop")):
    os.symlink(target, name)
for place in ("file", "folder/inner/deep", "folder/inner", "folder", "to-file", "to-folder", "nowhere", "loop", "."):
    os.utime(place, (1, 1), follow_symlinks=False)

def times(one, other):
    return struct.pack("=qqqq", *one, *other)

def opened(name):
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK)

def call(kind, name, *rest):
    path = name.replace("HERE", top).encode()
    match kind:
        case "chmod": return libc.chmod(path, rest[0])
        case "fchmod": return libc.fchmod(opened(path), rest[0])
        case "chmod of a folder's": return libc.fchmodat(opened("folder"), b"../" + path, rest[0], 0)
        case "chmod by number": return libc.chmod(b"/proc/self/fd/%d" % opened(path), rest[0])
        case "fchmodat2": return libc.syscall(452, -100, path, *rest)
        case "chown": return libc.chown(path, *(os.getuid() if one else -1 for one in rest))
        case "lchown": return libc.lchown(path, *(os.getgid() if one else -1 for one in rest))
        case "fchown": return libc.fchown(opened(path), *(os.getgid() if one else -1 for one in rest))
        case "utimensat": return libc.utimensat(-100, path, times(*rest[:2]), rest[2])
        case "futimens": return libc.futimens(opened(path), times(*rest))
        case "utimes": return libc.utimes(path, times(*rest))
        case "setxattr": return libc.setxattr(path, rest[0].encode(), b"12", 2, rest[1])
        case "removexattr" | "lremovexattr": return getattr(libc, kind)(path, rest[0].encode())
        case "nothing": return getattr(libc, name)(*(-100,) * (name == "utimensat"), None, None, None, 0, 0)

said = []
for one in json.load(sys.stdin):
    ctypes.set_errno(0)
    try:
        said.append([call(*one), ctypes.get_errno()])
    except OSError as error:
        said.append(error.errno)
for place in (".", "file", "folder", "folder/inner", "folder/inner/deep", "to-file", "to-folder", "nowhere"):
    facts = os.lstat(place)
    names = sorted(os.listxattr(place, follow_symlinks=False))
    said.append([place, facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, names])
print(json.dumps(said))
"""


@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # each two processes
@given(st.lists(CALL, min_size=10, max_size=60))
def test_changes_in_the_workspace_are_those_of_no_sandbox(calls: list[object]) -> None:
    with places("landlock") as made:
        (made.work / "calls.py").write_text(CALLS)
        (made.work / "calls.json").write_text(json.dumps(calls))
        (made.work / "calls").mkdir()
        plain = subprocess.run(
            f"{sys.executable} calls.py calls/here < calls.json",
            shell=True,
            cwd=made.work,
            capture_output=True,
            check=True,
        )
        (made.work / "calls" / "here").rename(made.work / "calls" / "before")
        result, text = asyncio.run(made.run(f"{sys.executable} calls.py calls/here < calls.json"))
        assert not result.is_error, text
        said = json.loads(text.splitlines()[0])
        for one, held, free in zip([*calls, *[None] * 8], said, json.loads(plain.stdout), strict=True):
            assert held == free, one


async def test_usual_programs_change_modes_and_times_in_the_workspace():
    with places("landlock") as made:
        for line in (
            "mkdir d && cp -a keep d/ && cp -r d e && cp -a d f && test keep -ot d || test -e f/keep",
            "install -m 711 keep g && test $(stat -c %a g) = 711",
            "tar -cf u.tar d && mkdir out && tar -xpf u.tar -C out",
            "test $(stat -c %Y out/d/keep) = $(stat -c %Y keep)",
            "printf 'a: keep\\n\\ttouch a\\n' > Makefile && make -s && make -q",
            "touch -d 2001-01-01 keep && test $(date -r keep +%Y) = 2001",
            "ln -s keep h && touch -h -d 2001-01-01 h && chown -h $(id -u) h",
            "git add -A && git -c user.name=n -c user.email=e commit -qm 1 && git checkout -q -b other && git gc -q",
            "cat <(echo x) < /dev/null > /dev/stdout && echo y | tee /dev/stderr | cat /dev/stdin",
            "t=$(mktemp -d) && touch -d 2001-01-01 $t && chmod 711 $t",
            "python3 -c \"import os, pty; os.fstat(pty.openpty()[1]); pty.spawn(['true'])\"",
            'python3 -c "import os; os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0)); os.nice(1)"',
            "sleep 9 & renice -n 2 -p $! && kill $!; wait; true",
        ):
            result, text = await made.run(line)
            assert not result.is_error, (line, text)


async def test_many_threads_and_processes_ask_at_once():
    many = (
        "import os, threading\n"
        "def work(number):\n"
        "    name = f'file-{number}-{os.getpid()}'\n"
        "    open(name, 'w').close()\n"
        "    for mode in (0o600, 0o640, 0o644, 0o711):\n"
        "        os.chmod(name, mode)\n"
        "    assert os.stat(name).st_mode & 0o777 == 0o711\n"
        "children = [os.fork() for _ in range(4)]\n"
        "threads = [threading.Thread(target=work, args=(number,)) for number in range(25)]\n"
        "[one.start() for one in threads], [one.join() for one in threads]\n"
        "try:\n"
        "    while True: assert os.wait()[1] == 0\n"
        "except ChildProcessError: pass\n"
    )
    with places("landlock") as made:
        (made.work / "many.py").write_text(many)
        result, text = await made.run("python3 many.py && stat -c %a file-* | sort | uniq -c")
        assert not result.is_error, text
        assert text.split()[1] == "711"
        assert text.split()[0] == str(25 * 16)


async def test_without_its_supervisor_a_command_goes_on_and_its_calls_fail(tmp_path):
    with places("landlock") as made:
        sandbox = made.bench.context.sandbox
        assert sandbox is not None
        confined = sandbox.confine(made.work, made.bench.context.environ, strict=False)
        line = "echo begun; while [ ! -e go ]; do sleep 0.1; done; chmod 600 keep 2>said; echo $? > new; mv new code"
        command = start_command(
            line, made.work, made.bench.context.environ, Collector(None), tmp_path / "running", confined=confined
        )
        try:
            await _until(lambda: b"begun" in command.collector.kept)
            os.kill(command.pid, signal.SIGKILL)
            await command.exited
            (made.work / "go").touch()
            await _until((made.work / "code").exists)
            assert (made.work / "code").read_text() == "1\n"
            assert "Function not implemented" in (made.work / "said").read_text()
        finally:
            await command.end()
            command.close()


async def _until(there) -> None:
    async with asyncio.timeout(30):
        while not there():
            await asyncio.sleep(0.02)


@pytest.fixture
def before_scopes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this kernel's Landlock be held for one that does not judge signals: version 6 is the first that does."""
    need("landlock")
    monkeypatch.setattr(landlock, "landlock_version", lambda: 5)
    machine._find.cache_clear()
    yield
    machine._find.cache_clear()


SIGNALS = (
    "kill -9 {owner}",
    "kill -0 {owner}",
    "kill -9 -- -{owner}",
    "python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({owner}), 9)'",
    "python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).tgkill({owner}, {owner}, 9) == -1)'",
    "python3 -c 'import signal; signal.pthread_kill; import os; os.killpg({owner}, 9)'",
    "renice -n 5 -p {owner}",
    "renice -n 5 -g {owner}",
    "ionice -c 3 -p {owner}",
    "taskset -p 1 {owner}",
    "chrt -b -p 0 {owner}",
    "prlimit --pid {owner} --nofile=3:3",
    "prlimit --pid {owner} --cpu=0:0",
)
OWNING = (
    'python3 -c "import fcntl, os\n'
    "reads, writes = os.pipe()\n"
    "try:\n"
    "    fcntl.fcntl(reads, fcntl.F_SETOWN, {owner})\n"
    "    fcntl.fcntl(reads, 10, 9)\n"
    "    fcntl.fcntl(reads, fcntl.F_SETFL, os.O_ASYNC)\n"
    "    os.write(writes, b'.')\n"
    'except OSError: pass"'
)
"""Has a process signalled when there is something to read."""
UPWARD = ("kill -9 $PPID", "renice -n 5 -u $(id -un)", "renice -n 5 -g 0 && renice -n 5 -p $PPID")
"""What leads out by another way than a number that is known; in a namespace of processes it leads nowhere."""


async def _check_others_are_left_alone(made: Places) -> None:
    assert made.bench.context.sandbox is not None
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        facts = os.getpriority(os.PRIO_PROCESS, owner.pid), os.sched_getaffinity(owner.pid)
        for line in (*SIGNALS, *(UPWARD if made.bench.context.sandbox.machine.kind == "landlock" else ())):
            result, text = await made.run(line.format(owner=owner.pid))
            assert result.is_error, (line, text)
            assert owner.poll() is None, line
            assert facts == (os.getpriority(os.PRIO_PROCESS, owner.pid), os.sched_getaffinity(owner.pid)), line
        for line in (
            OWNING.format(owner=owner.pid),
            "sleep 9 & kill $!; wait $!; test $? = 143",
            "set -m; sleep 9 & kill -- -$!; wait $!; test $? = 143",
            "setsid -f sleep 77; true",
            "trap 'echo caught' WINCH; kill -WINCH $$; kill -WINCH 0",
            "python3 -c 'import signal, threading; signal.signal(10, lambda *_: 0); signal.raise_signal(10); "
            "signal.pthread_kill(threading.get_ident(), 10)'",
            "timeout 0.1 sleep 9; test $? = 124",
            "sh -c 'kill -9 $$'; test $? = 137",
        ):
            result, text = await made.run(line)
            assert not result.is_error, (line, text)
        await made.run("trap '' TERM; sleep 66 & kill -9 0")  # all of the command, and not what stands over it
        await made.run("trap '' TERM; sleep 66 & kill -9 -1")
        assert owner.poll() is None
    finally:
        owner.kill()
        owner.communicate()


@pytest.mark.parametrize("kind", KINDS)
async def test_other_processes_are_not_signalled_and_not_slowed(kind):
    with places(kind) as made:
        await _check_others_are_left_alone(made)


@pytest.mark.usefixtures("before_scopes")
async def test_other_processes_are_not_signalled_where_landlock_does_not_judge_signals():
    with places("landlock") as made:
        assert made.bench.context.sandbox is not None
        assert made.bench.context.sandbox.machine.detail == "version 5"
        await _check_others_are_left_alone(made)


async def test_terminals_of_the_user_are_neither_written_nor_read():
    with places("landlock") as made:
        ours, theirs = os.openpty()
        try:
            path = os.ttyname(theirs)
            for line in (f"echo x > {path}", f"exec 3< {path}", f"stty -F {path} -echo", f"chmod 600 {path}"):
                result, text = await made.run(line)
                assert result.is_error, (line, text)
        finally:
            os.close(ours)
            os.close(theirs)


UNASKED = """
import ctypes, os, struct, sys
from tenuto.guard.sandbox.outward import asked_calls
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000), 8)
listener = libc.syscall(asked_calls(signals=False)["seccomp"], 1, 8, struct.pack("@HP", 1, ctypes.addressof(code)))
os.set_inheritable(listener, True)
os.execv(sys.executable, [sys.executable, "-m", "tenuto", *sys.argv[1:]])
"""
"""Starts Tenuto behind a filter that could ask and lets everything through: such a filter can be set once."""


def test_where_nobody_can_be_asked_the_calls_are_refused_and_doctor_says_so():
    said = "modes, owners, times and attributes of files cannot be changed, in the workspace either"
    with places("landlock") as made:
        environ = {**made.bench.context.environ, "TENUTO_HOME": str(made.own_home), "TENUTO_SANDBOX__KIND": "landlock"}

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", UNASKED, *words],
                cwd=made.work,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
            )

        before = made.outer()
        for line in ("chmod 600 keep", "touch -d 2001-01-01 keep", "renice -n 1 -p $PPID", "chmod 600 $OUT/keep"):
            assert run("sandbox", "--", line).returncode == 1, line
        for line in ("echo x > new && cp new newer && git status", "ulimit -n 100 && nice true"):
            assert run("sandbox", "--", line).returncode == 0, line
        assert made.outer() == before
        assert said in run("sandbox", "--status").stdout
        rows = json.loads(run("doctor", "--json").stdout)["rows"]
        (row,) = (one for one in rows if one["name"] == "sandbox")
        assert row["state"] == "note"
        assert said in row["found"]
        assert "bubblewrap" in row["do"]
