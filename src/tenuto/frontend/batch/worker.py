"""One try at a task: a worktree, the setup, an agent as a child process, the check, the patch."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tenuto.config.sources import home_directory, load_settings
from tenuto.engine.child import last_line, run_child
from tenuto.exit_codes import BAD_USAGE, CALLS_REFUSED, CUT_OFF, DECLINED, FAILED, LIMIT_REACHED, OK
from tenuto.frontend.batch.results import Attempt, Outcome
from tenuto.frontend.batch.tasks import Task
from tenuto.frontend.batch.worktree import Worktree, WorktreeError, remove_folder, remove_leftovers
from tenuto.guard.sandbox.sandbox import Confined
from tenuto.private_files import make_directory
from tenuto.text.bounding import cut_tail
from tenuto.text.writable import to_json
from tenuto.tool.run.confining import make_sandbox

COMMAND_SECONDS = 1800.0
"""How long a setup or a check may take where `--timeout` says nothing."""
LATE_SECONDS = 30.0
"""How long after its own `--timeout` an agent is given up."""
SHOWN_CHARS = 2_000
OUTCOMES_BY_CODE: dict[int, Outcome] = {
    OK: "done",
    FAILED: "failed",
    BAD_USAGE: "invalid",
    CUT_OFF: "cut_off",
    LIMIT_REACHED: "limit_reached",
    CALLS_REFUSED: "refused",
    DECLINED: "declined",
}
"""Any other code is no end of its own."""


class AgentJob(Struct, frozen=True):
    """A task with the limits of this try."""

    task: Task
    places: str
    """The folder for worktrees."""
    token: str
    """What tells this try from every other one of the task: one that was lost may still be ending somewhere."""
    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    """Seconds; for the agent, and for setup and check each."""
    keep: bool = False
    sandboxed: bool = True

    async def run(self, environ: Mapping[str, str]) -> Attempt:
        """Try the task once, and leave nothing but what it asks to keep. Ended early, the agent ends in order."""
        begun = time.monotonic()
        folder = self.folder
        tree: Worktree | None = None
        kept = False
        try:
            tree = await asyncio.to_thread(_prepare, self, folder, environ)
            attempt = await _work(self, tree.cwd if tree else Path(self.task.cwd), folder / "scratch", environ)
            if tree is not None:
                attempt = await asyncio.to_thread(_take_changes, attempt, tree)
                kept = bool(attempt.patch) and self.keep
        except (WorktreeError, OSError) as error:
            attempt = Attempt("setup_failed", str(error))
        finally:
            if not kept:
                await asyncio.to_thread(_clean, tree, folder)
        if kept and tree is not None:
            remove_folder(folder / "scratch")
            attempt = msgspec.structs.replace(attempt, worktree=str(tree.root))
        return msgspec.structs.replace(attempt, seconds=time.monotonic() - begun)

    def clean(self, environ: Mapping[str, str]) -> None:
        """Take away what a lost try has left here: it may have gone on while the next one began."""
        with contextlib.suppress(WorktreeError, OSError):
            _remove(self.task, self.folder, environ)

    @property
    def folder(self) -> Path:
        """What this try alone works in."""
        return Path(self.places, f"{self.task.id}@{self.token}")


def _remove(task: Task, folder: Path, environ: Mapping[str, str]) -> None:
    if task.cwd:
        remove_folder(folder)
    else:
        remove_leftovers(Path(task.repo), folder, environ)


def _prepare(job: AgentJob, folder: Path, environ: Mapping[str, str]) -> Worktree | None:
    """Make the folder of a task anew. Raises `WorktreeError` and `OSError`."""
    repository = Path(job.task.repo)
    for left in Path(job.places).glob(f"{job.task.id}@*"):
        _remove(job.task, left, environ)
    make_directory(folder / "scratch")
    return None if job.task.cwd else Worktree(repository, folder, job.task.ref, environ)


def _clean(tree: Worktree | None, folder: Path) -> None:
    with contextlib.suppress(WorktreeError, OSError):
        if tree is not None:
            tree.remove()
    remove_folder(folder)


def _take_changes(attempt: Attempt, tree: Worktree) -> Attempt:
    """Return the attempt with what was changed. Raises `WorktreeError`."""
    return msgspec.structs.replace(
        attempt, patch=tree.take_patch(), changed_files=tuple(tree.changed_files()), commit=tree.new_commit()
    )


async def _work(job: AgentJob, cwd: Path, scratch: Path, environ: Mapping[str, str]) -> Attempt:
    """Run the setup, the agent, the check."""
    seconds = job.timeout or COMMAND_SECONDS
    if job.task.setup:
        ended = await run_child(job.task.setup, cwd, environ, scratch, seconds)
        if ended.code != 0:
            return Attempt("setup_failed", f"the setup {ended.describe(seconds)}")
    attempt = await _run_agent(job, cwd, environ, scratch)
    if not job.task.check or attempt.outcome not in ("done", "refused"):
        return attempt
    with _confined(job, cwd, environ) as confined:
        ended = await run_child(job.task.check, cwd, environ, scratch, seconds, confined=confined)
    said = cut_tail(ended.output.decode("utf-8", "replace"), SHOWN_CHARS)
    if ended.code == 0:
        return msgspec.structs.replace(attempt, outcome="done", check_output=said)
    error = f"the check {ended.describe(seconds)}"
    return msgspec.structs.replace(attempt, outcome="check_failed", error=error, check_output=said)


async def _run_agent(job: AgentJob, cwd: Path, environ: Mapping[str, str], scratch: Path) -> Attempt:
    with tempfile.TemporaryFile(dir=scratch) as prompt, tempfile.TemporaryFile(dir=scratch) as errors:
        prompt.write(job.task.prompt.encode())
        prompt.seek(0)
        seconds = job.timeout + LATE_SECONDS if job.timeout else None
        line = f"exec {shlex.join(agent_words(job, scratch))}"
        ended = await run_child(line, cwd, environ, scratch, seconds, reads=prompt, errors=errors)
        errors.seek(0)
        said = last_line(errors.read())
    return read_answer(ended.code, ended.output, said)


def agent_words(job: AgentJob, scratch: Path) -> list[str]:
    """Return the command line of a task's agent; its prompt comes on standard input."""
    words = [sys.executable, "-P", "-m", "tenuto", "-p", "--output-format", "json"]
    task = job.task
    given = {"--model": task.model, "--mode": task.mode, "--max-turns": job.max_turns, "--timeout": job.timeout}
    given |= {"--max-cost": job.max_cost}
    for option, value in given.items():
        if value:
            words += [option, str(value)]
    for rule in task.allow:
        words += ["--allow", rule]
    if task.schema:
        schema = scratch / "schema.json"
        schema.write_bytes(to_json(task.schema))
        words += ["--output-schema", str(schema)]
    return words if job.sandboxed else [*words, "--no-sandbox"]


def read_answer(code: int | None, output: bytes, said: str) -> Attempt:
    """Return what an agent came to by its exit code, what it printed, and the last that it said. Pure."""
    answer: dict[str, Any] = {}
    with contextlib.suppress(msgspec.DecodeError, UnicodeError):
        answer = msgspec.json.decode(output.strip().rpartition(b"\n")[2], type=dict[str, Any])
    outcome = OUTCOMES_BY_CODE.get(code) if code is not None else "limit_reached"
    if outcome is None or (outcome != "invalid" and code is not None and not answer):
        return Attempt("crashed", f"the agent ended with {code}" + (f": {said}" if said else ""), answer)
    error = str(answer.get("error") or "") or (said if outcome != "done" else "")
    return Attempt(outcome, error if code is not None else "it did not end when its time was over", answer)


@contextlib.contextmanager
def _confined(job: AgentJob, cwd: Path, environ: Mapping[str, str]) -> Generator[Confined | None]:
    """Hold a check as the agent's own commands are held: it runs what the agent has written."""
    home = home_directory(environ)
    wishes = load_settings(home, cwd, environ)[0].sandbox
    if not (job.sandboxed and wishes.enabled):
        yield None
        return
    with contextlib.closing(make_sandbox(wishes, cwd, home, wanted=True)) as sandbox:
        if not sandbox.holds:
            raise OSError(f"the check is not run without a sandbox: {sandbox.machine}")
        yield sandbox.confine(cwd, environ, strict=False)
