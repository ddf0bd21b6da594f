from __future__ import annotations

import asyncio
import os
import pty
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.guard.approval import judge
from tenuto.guard.subject import Allow, Ask
from tenuto.protocol.message import ShellView
from tenuto.protocol.part import text_of
from tenuto.session.results import shown_text
from tenuto.session.store import RunningCommand
from tenuto.tool.process.left_running import session_members
from tenuto.tool.process.process import Collector, shell_environment
from tenuto.tool.run.runner import PreparedCall
from tenuto.tool.shell import LiveOutput, ShellRun, run_shell
from tests.tool.support import Bench

HANG = 120.0
"""Seconds after which a test counts as hanging; nothing here should come near."""


def alive(marker: str) -> list[str]:
    """The live processes whose command line contains `marker`."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0] if entry.name.isdigit() else "Z"
            if state != "Z" and marker in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode():
                found.append(entry.name)
        except OSError:
            continue
    return found


async def test_output_exit_code_and_directory_are_in_the_result(bench: Bench) -> None:
    result = await bench.call("bash", command="echo out; echo err >&2; exit 3")
    assert text_of(result.parts) == f"out\nerr\n[Exit code 3 · {bench.work}]"
    assert result.is_error
    ending = f"[Exit code 3 · {bench.work}]"
    assert result.ui == (ShellView(command="echo out; echo err >&2; exit 3", exit_code=3, ending=ending),)
    assert shown_text(result) == "out\nerr"
    result = await bench.call("bash", command="kill -9 $$")
    assert "[Exit code 137 ·" in text_of(result.parts)
    assert "(no output)" in await bench.text("bash", command="true")


async def test_r077_background_child_does_not_hold_the_tool(bench: Bench) -> None:
    text = await asyncio.wait_for(bench.text("bash", command="sleep 1000 & echo done"), HANG)
    assert text.startswith("done\n[Exit code 0")
    assert "still runs" in text
    (job,) = bench.context.jobs.running()
    await bench.context.close()
    assert session_members(job.pid) == []


async def test_r077_what_is_left_behind_goes_on_writing_into_its_log(bench: Bench) -> None:
    ticks = "for i in 1 2 3 4 5 6; do echo tick $i; done"
    command = f"(until [ -e go ]; do sleep 0.02; done; {ticks}; echo over) & echo first"
    text = await bench.text("bash", command=command)
    (job,) = bench.context.jobs.running()
    assert str(job.log) in text
    assert job.log is not None
    (bench.work / "go").touch()
    await asyncio.wait_for(job.process.drained.wait(), HANG)
    assert job.log.read_text().endswith("tick 6\nover\n")


STUBBORN = "sh -c 'trap \"\" TERM; sleep 9{mark} & sleep 9{mark}'"


@pytest.mark.parametrize(
    "command",
    [
        STUBBORN,
        "sleep 9{mark} & sleep 9{mark}",
        "set -m; (trap '' TERM HUP; sleep 9{mark}) & sleep 9{mark}",
        "(sleep 9{mark} & ) ; exec sleep 9{mark}",
        "nohup sleep 9{mark} >/dev/null 2>&1 & exec sh -c 'sleep 9{mark} & kill -STOP $!; sleep 9{mark}'",
    ],
)
async def test_r078_t32_a_cancel_leaves_nothing_running(bench: Bench, command: str) -> None:
    mark = f"{os.getpid()}{abs(hash(command)) % 10_000}"
    task = asyncio.ensure_future(bench.call("bash", command=command.replace("{mark}", mark)))
    while not alive(f"sleep 9{mark}"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(f"9{mark}") == []


async def test_r078_a_second_cancel_kills_at_once(bench: Bench) -> None:
    mark = f"{os.getpid()}77"
    task = asyncio.ensure_future(bench.call("bash", command=STUBBORN.replace("{mark}", mark)))
    while not alive(f"sleep 9{mark}"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(HANG):
        while alive(f"9{mark}"):
            await asyncio.sleep(0.02)


async def test_r078_the_leader_is_gone_and_its_children_are_killed_at_the_end(bench: Bench) -> None:
    mark = f"{os.getpid()}88"
    await bench.text("bash", command=f"(trap '' TERM; sleep 9{mark}) >/dev/null 2>&1 & disown; exit 0")
    assert alive(f"sleep 9{mark}")
    await bench.context.close()
    assert alive(f"9{mark}") == []


async def test_a_timeout_kills_the_tree_and_keeps_the_output(bench: Bench) -> None:
    mark = f"{os.getpid()}99"
    text = await bench.error("bash", command=f"echo before; sleep 9{mark} & sleep 9{mark}", timeout=2)
    assert text.startswith("before\n[Stopped after 2 s (time limit)")
    assert alive(f"9{mark}") == []


@pytest.mark.parametrize(
    "command",
    ["read x", "cat", "cat /dev/tty", "git log", "git commit", "git commit --amend", "git rebase -i HEAD~1",
     "sudo -k true", "ssh -o ConnectTimeout=2 nobody@127.0.0.1 -p 9", "python3 -c 'input()'", "man ls", "more big.txt",
     "GIT_TERMINAL_PROMPT=0 git clone http://127.0.0.1:9/x", "$EDITOR x", "stty -a", "passwd"],
)  # fmt: skip
async def test_r079_t33_nothing_waits_for_a_user(bench: Bench, command: str) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], cwd=bench.work, check=True)
    bench.write("big.txt", "line\n" * 5000)
    for number in range(2):
        subprocess.run(
            [*git, "commit", "-q", "--allow-empty", "-m", f"c{number}\n" + "x\n" * 300], cwd=bench.work, check=True
        )
    result = await asyncio.wait_for(bench.call("bash", command=command, timeout=HANG), HANG + 5)
    assert "time limit" not in text_of(result.parts)


def test_r079_t33_a_terminal_of_ours_is_not_the_commands_terminal(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tests.tool.support import make_bench\n"
        "async def main():\n    bench = make_bench(Path(sys.argv[1]))\n"
        "    print(await bench.error('bash', command='read x; cat /dev/tty; tty'))\nasyncio.run(main())\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", script, str(tmp_path)])
    output = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    os.waitpid(pid, 0)
    assert b"No such device" in output
    assert b"not a tty" in output


def test_r079_the_environment_opens_no_pager_editor_or_prompt() -> None:
    made = shell_environment({"PAGER": "less", "EDITOR": "vim", "SSH_ASKPASS": "x", "SUDO_ASKPASS": "x", "HOME": "/h"})
    assert (made["PAGER"], made["GIT_PAGER"], made["EDITOR"], made["GIT_TERMINAL_PROMPT"]) == (
        "cat",
        "cat",
        "false",
        "0",
    )
    assert made["HOME"] == "/h"
    assert not {"SSH_ASKPASS", "SUDO_ASKPASS"} & made.keys()


@pytest.mark.parametrize("background", [False, True])
async def test_b13_bash_env_and_ci_reach_a_command_as_the_user_set_them(bench: Bench, background: bool) -> None:
    sourced = bench.write("environment.sh", "export PATH=/opt/conda/bin:$PATH\nfrom_bash_env() { echo sourced; }\n")
    asks = {
        "PAGER": "less",
        "GIT_PAGER": "less",
        "EDITOR": "vim",
        "SSH_ASKPASS": "/bin/ask",
        "GIT_TERMINAL_PROMPT": "1",
    }
    bench.context.environ = {**os.environ, **asks, "BASH_ENV": str(sourced), "ENV": "/home/me/.shrc", "CI": "1"}
    seen = await bench.text(
        "bash",
        command="from_bash_env; echo $PATH; echo CI=$CI ENV=$ENV; "
        "echo $PAGER,$GIT_PAGER,$EDITOR,$GIT_TERMINAL_PROMPT,${SSH_ASKPASS-unset}",
        background=background,
    )
    assert "sourced\n/opt/conda/bin:" in seen
    assert "CI=1 ENV=/home/me/.shrc\n" in seen
    assert "cat,cat,false,0,unset" in seen


async def test_r097_10_mb_of_output_in_bounded_memory(bench: Bench) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await bench.call("bash", command="seq 1 1500000; echo THE END")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = text_of(result.parts)
    size = sum(len(str(number)) + 1 for number in range(1, 1_500_001)) + 8
    assert size > 10_000_000
    assert after - before < 8_000  # kilobytes
    assert result.truncated
    assert result.output_size == size == Path(result.output_path).stat().st_size
    assert len(text) <= 30_000
    assert text.startswith("1\n2\n3\n")
    assert "1500000\nTHE END\n[Exit code 0" in text
    head, _, tail = text.partition("\n[… ")
    kept = head.count("\n") + 1 + tail.partition("]\n")[2].partition("[Exit")[0].count("\n")
    assert f"{1_500_001 - kept:,} lines" in text
    assert result.output_path in text


async def test_r097_a_single_5_mb_line(bench: Bench) -> None:
    result = await bench.call("bash", command="head -c 5000000 /dev/zero | tr '\\0' x")
    assert result.truncated
    assert len(text_of(result.parts)) <= 30_000
    assert Path(result.output_path).read_bytes() == b"x" * 5_000_000
    assert os.stat(result.output_path).st_mode & 0o777 == 0o600


async def test_many_short_lines_are_bounded_by_lines(bench: Bench) -> None:
    result = await bench.call("bash", command="yes | head -n 5000")
    assert result.truncated
    assert text_of(result.parts).count("\n") <= 2_000
    assert Path(result.output_path).read_text() == "y\n" * 5000


async def test_small_outputs_leave_no_file(bench: Bench) -> None:
    await bench.text("bash", command="echo hi")
    assert not bench.session.store.outputs.exists() or not list(bench.session.store.outputs.iterdir())


async def test_the_model_gets_no_control_bytes(bench: Bench) -> None:
    text = await bench.text("bash", command=r"printf '\033[31mred\033[0m\033]52;c;eA==\007 10%%\r100%%\n'")
    assert text.startswith("100%\n")


async def test_live_output_comes_while_it_runs_and_is_safe(bench: Bench) -> None:
    task = asyncio.ensure_future(
        bench.text("bash", command=r"printf 'a\033]0;x\007b\n'; until [ -e go ]; do sleep 0.02; done; echo later")
    )
    while not bench.live:
        await asyncio.sleep(0.01)
    assert not task.done()
    (bench.work / "go").touch()
    await task
    assert "".join(bench.live) == "ab\nlater\n"


async def test_live_output_joins_what_chunks_cut() -> None:
    seen: list[str] = []
    live = LiveOutput(seen.append)
    for byte in "é\x1b[31mred\x1b]0;title\x07中".encode():
        live.add(bytes([byte]))
        live._flush()  # the worst case: a flush after every byte
    live.close()
    assert "".join(seen) == "éred中"


async def test_background_job(bench: Bench) -> None:
    result = await bench.call("bash", command="echo up; exec sleep 1000", background=True)
    text = text_of(result.parts)
    assert not result.is_error
    assert result.ui == (ShellView(command="echo up; exec sleep 1000", background=True),)
    (job,) = bench.context.jobs.running()
    assert f"process {job.pid}" in text
    assert str(job.log) in text
    assert "Output so far:\nup" in text
    assert "up" in await bench.text("read", path=str(job.log))
    await bench.text("bash", command=f"kill -- -{job.pid}")
    await asyncio.wait_for(job.process.exited, HANG)
    assert bench.context.jobs.running() == []
    assert bench.context.jobs.take_finished() == [job]
    assert bench.context.jobs.take_finished() == []


async def test_a_background_job_that_fails_at_once_says_so(bench: Bench) -> None:
    text = await bench.error("bash", command="echo broken; exit 4", background=True)
    assert "exit code 4" in text
    assert "broken" in text


async def test_jobs_end_with_the_session(bench: Bench) -> None:
    await bench.text("bash", command="trap '' TERM; sleep 1000; sleep 1000", background=True)
    (job,) = bench.context.jobs.running()
    await bench.context.close()
    assert session_members(job.pid) == []


async def test_a_command_that_cannot_be_started_says_why(bench: Bench) -> None:
    assert "empty" in await bench.error("bash", command="  ")
    assert "NUL" in await bench.error("bash", command="a\0b")
    bench.work.rmdir()
    for background in (False, True):
        said = await bench.error("bash", command="ls", background=background)
        assert "could not be started: its working directory is gone" in said


async def test_a_full_disk_ends_the_storing_and_not_the_command(tmp_path: Path) -> None:
    collector = Collector(lambda: tmp_path / "missing" / "x.txt")
    for _ in range(40):
        collector.add(b"x" * 50_000 + b"\n")
    collected = collector.text(1_000, 100)
    assert collected.truncated
    assert len(collected.text) < 1_600
    assert "No such file" in collected.text


async def test_an_endless_output_fills_no_disk(tmp_path: Path) -> None:
    collector = Collector(lambda: tmp_path / "x.txt", spool_limit=1_000_000)
    for _ in range(40):
        collector.add(b"x" * 50_000)
    collector.close()
    assert (tmp_path / "x.txt").stat().st_size == 1_000_000
    assert "Only its first 1.0 MB were stored" in collector.text(1_000, 100).text


async def test_the_ends_of_a_long_output_keep_whole_characters(tmp_path: Path) -> None:
    collector = Collector(lambda: tmp_path / "x.txt")
    collector.add(b"a")
    for _ in range(400):
        collector.add("中€😀".encode() * 500)
    text = collector.text(600_000, 10**6).text
    assert "\ufffd" not in text


async def test_run_shell_serves_the_users_own_commands(bench: Bench) -> None:
    run = ShellRun(command="echo one; exit 2", cwd=bench.work)
    await run_shell(run, bench.context, os.environ, bench.live.append, RunningCommand())
    assert (run.output, run.exit_code, run.truncated) == ("one\n", 2, False)
    run = ShellRun(command="echo partial; sleep 1000", cwd=bench.work)
    task = asyncio.ensure_future(run_shell(run, bench.context, os.environ, bench.live.append, RunningCommand()))
    while "partial" not in "".join(bench.live):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.output == "partial\n"
    assert run.exit_code is None


async def judge_command(bench: Bench, command: str) -> type:
    prepared = await bench.prepare("bash", command=command)
    assert isinstance(prepared, PreparedCall)
    return type(judge("ask", prepared.subject, [], bench.context.places))


async def test_r087_reading_commands_are_judged_by_where_their_words_lead(bench: Bench) -> None:
    bench.write("in.txt", "a")
    (bench.work / "link").symlink_to("/etc/passwd")
    assert await judge_command(bench, "cat in.txt") is Allow
    for command in ("cat link", "cat /etc/passwd", "cat ../home/x", "cat ../../../../etc/passwd", "ls /"):
        assert await judge_command(bench, command) is Ask, command


async def test_r086_git_is_asked_for_where_the_repository_brings_programs(bench: Bench) -> None:
    subprocess.run(["git", "init", "-q"], cwd=bench.work, check=True)
    assert await judge_command(bench, "git status") is Allow
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.x.textconv", "filter.x.clean", "include.path"):
        subprocess.run(["git", "config", key, "touch canary"], cwd=bench.work, check=True)
        assert await judge_command(bench, "git status") is Ask, key
        subprocess.run(["git", "config", "--unset", key], cwd=bench.work, check=True)
    assert await judge_command(bench, "git status") is Allow
    bench.write(".git/hooks/post-index-change", "touch canary")
    assert await judge_command(bench, "git status") is Ask
