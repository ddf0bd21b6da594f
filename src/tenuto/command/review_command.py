"""`/review`: have the agent look over changes, and change nothing itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.git import Git, GitFailedError, GitRefusedError, open_git
from tenuto.protocol.entry import Terms
from tenuto.protocol.part import TextPart

SECONDS = 20.0
MAIN_BRANCHES = ("origin/HEAD", "main", "master", "trunk", "develop")
"""What a branch is compared with: the first that is there."""
HOW = """Read whole files around a change where the diff alone does not tell, look up who calls what was changed, and
check each suspicion in the code before you report it. Report only what these changes bring in. You only look: nothing
is edited, and no command that changes anything runs.

Answer in this form, and with nothing else:

## Findings
One numbered item each, the worst first: **severity** (bug, risk, or nit), `path:line`, what happens and when, and how
to fix it, in at most four lines. Say "None." where there are none.

## Not checked
What you could not see or did not look at, one line each; leave the heading out where there is nothing.

## Verdict
One sentence: can this go in as it is, after the bugs are fixed, or not at all."""
OPTIONS = "--no-ext-diff --no-textconv"


async def run_review(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Send the prompt: of what is not committed, of a branch, of a commit or a range, or of what the words say."""
    what = await asyncio.to_thread(describe_changes, runtime.live.session.cwd, argument.strip())
    if not what:
        return [Say("Nothing has changed since the last commit; /review BRANCH or COMMIT looks at that.")]
    terms = Terms(by="/review", only_looks=True)
    await runtime.submit_prompt((TextPart(text=f"{what}\n\n{HOW}"),), origin="command", terms=terms)
    return []


def describe_changes(cwd: Path, wanted: str) -> str:
    """Return what is to be reviewed and how to see it, empty where nothing has changed. Raises `UsageError`."""
    try:
        git = open_git(cwd)
        if git is None:
            if wanted:
                return f"Review this: {wanted}"
            raise UsageError(f"{cwd} is in no git repository; /review WORDS says what to look at")
        return _of_named(git, cwd, wanted) if wanted else _of_work_tree(git, cwd)
    except GitRefusedError as refused:
        raise UsageError(f"git is not run here: {refused}") from refused
    except GitFailedError as failed:
        raise UsageError(str(failed)) from failed


def _of_work_tree(git: Git, cwd: Path) -> str:
    changed = _say(git, cwd, "status", "--porcelain", "--ignore-submodules=all")
    if not changed:
        return ""
    base = " HEAD" if _commit(git, cwd, "HEAD") else " --cached"
    return (
        "Review what is not committed in this work tree. `git status --short` lists it, "
        f"`git diff{base} {OPTIONS}` shows it; read files that are new (`??`) in full."
    )


def _of_named(git: Git, cwd: Path, wanted: str) -> str:
    if ".." in wanted and all(_commit(git, cwd, end or "HEAD") for end in wanted.replace("...", "..").split("..")[:2]):
        return f"Review the commits `{wanted}`: `git log --oneline {wanted}`, `git diff {OPTIONS} {wanted}`."
    if wanted.startswith("-") or len(wanted.split()) > 1 or not _commit(git, cwd, wanted):
        return f"Review this: {wanted}"
    if not _say(git, cwd, "rev-parse", "--symbolic-full-name", wanted):
        return f"Review the commit {wanted}: `git show {OPTIONS} {wanted}`."
    base = next((name for name in MAIN_BRANCHES if name != wanted and _commit(git, cwd, name)), "")
    if not base:
        return f"Review the last commit of {wanted}: `git show {OPTIONS} {wanted}`."
    return (
        f"Review the branch {wanted} against {base}: `git log --oneline {base}..{wanted}` lists its commits, "
        f"`git diff {OPTIONS} {base}...{wanted}` shows what it changes. It need not be checked out: "
        f"`git show {wanted}:PATH` shows a file as it is there."
    )


def _commit(git: Git, cwd: Path, name: str) -> str:
    return _say(git, cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def _say(git: Git, cwd: Path, *words: str) -> str:
    ran = git.run(cwd, *words, seconds=SECONDS)
    return ran.stdout.decode("utf-8", "replace").strip() if ran.returncode == 0 else ""
