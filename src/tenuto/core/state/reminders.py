"""What the model is told between two answers: mode, date and place, files that changed on disk.

It travels as developer messages in the gap before the next request, so nothing that was sent ever changes
(DESIGN section 3, "A developer entry belongs to the gap"). Each kind is told once and again when it changes.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.config.project import MAX_BYTES, RefusedFileError, read_branch, read_regular
from tenuto.protocol.entry import PLACE_KIND, Mode, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, FileUse, HistoryEvent, Message
from tenuto.session.plans import CLOSE_TAG, OPEN_TAG
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.late import late

if TYPE_CHECKING:
    from tenuto.guard.rules import Rule
    from tenuto.tool.process.job_table import Job

IN_A_BLOCK = f"(changes, where, order, checks), without a call, between a line {OPEN_TAG} and a line {CLOSE_TAG}."
MODE_TEXTS: Mapping[Mode, str] = {
    "ask": "Approval mode: ask. The user is asked before each edit and each command.",
    "edits": "Approval mode: edits. Edits inside the working directory need no approval; commands do.",
    "auto": "Approval mode: auto. Edits and commands run without approval; be as careful as the user would be.",
    "plan": (
        "Approval mode: plan. Only look: read, search, and work out a plan. When it is complete, end your answer with "
        f"all of it in Markdown {IN_A_BLOCK} The user approves it or says what to change. Edits and commands that "
        "change anything are refused until then. A question that needs no change is answered as always, without a plan."
    ),
}
ALONE_TEXTS: Mapping[Mode, str] = {
    "ask": "Approval mode: ask, with nobody to ask: edits, and commands that do more than look, are refused.",
    "edits": (
        "Approval mode: edits, with nobody to ask: edits inside the working directory run; commands that do more than "
        "look are refused."
    ),
    "auto": MODE_TEXTS["auto"],
    "plan": (
        "Approval mode: plan. Only look: read, search, and work out a plan; all else is refused. End your answer with "
        f"all of the plan in Markdown {IN_A_BLOCK} It is the result. A question that needs no change is answered "
        "without a plan."
    ),
}
ALONE = (
    "This run has no user: nobody reads along and nobody answers. Decide for yourself and say what you assumed. Do not "
    "go round a refusal. Your last message is the result that is handed on."
)


def alone_text(mode: Mode, given: Sequence[Rule], answer_note: str) -> str:
    """Return what the model is told of its mode in a run without a user; `given` are the rules."""
    return " ".join(part for part in (ALONE_TEXTS[mode], *_named(given), ALONE, answer_note) if part)


def _named(given: Sequence[Rule]) -> list[str]:
    """Return what rules come to where nobody can be asked."""
    allowed = ", ".join(rule.text for rule in given if rule.effect == "allow")
    denied = ", ".join(rule.text for rule in given if rule.effect != "allow")
    parts = (
        f"Allowed all the same: {allowed}." if allowed else "",
        f"Refused in any case: {denied}." if denied else "",
    )
    return [part for part in parts if part]


CHILD_TEXTS: Mapping[Mode, str] = {
    **{mode: text.replace("The user is asked", "A user is asked") for mode, text in MODE_TEXTS.items()},
    "plan": "Approval mode: plan, of the agent that you work for. Only look; what changes anything is refused.",
}


def child_text(mode: Mode, given: Sequence[Rule], reads_only: bool, interactive: bool) -> str:
    """Return what a sub-agent is told of the mode that it works in: that of the agent that it works for."""
    if reads_only:
        return "Approval mode: only look. Calls that change anything are refused, whatever the mode."
    if interactive or mode == "plan":
        return CHILD_TEXTS[mode]
    return " ".join((ALONE_TEXTS[mode], *_named(given)))


MAX_CHANGED_FILES = 20
_COMMIT_DIGITS = 12
_PERCENT = late(r"(\d+) %")
_HERE = "Working directory: "
AGENTS_KIND = "agents"
"""A note on the agents of the user and the project, for the tool that runs them."""
NO_AGENTS = "There are no agents for the agent tool any more but explore and general."
KINDS = ("environment", PLACE_KIND, "mode", AGENTS_KIND)
FILES_KIND, JOBS_KIND, FILL_KIND = "changed files", "ended jobs", "context"
FILL_MARKS = (80, 60)
"""Hundredths of the trigger at which the model is told how full the context is, once each until a compaction."""


def environment_text(cwd: Path, now: float) -> str:
    """Return where and when the session runs, by the day."""
    day = time.strftime("%A, %Y-%m-%d", time.localtime(now))
    branch = current_branch(cwd)
    where = f"{_HERE}{cwd}" + (f" (git branch {branch})" if branch else "")
    return f"{where}\nSystem: {platform.system()} {platform.machine()}\nDate: {day}"


def current_branch(cwd: Path) -> str:
    """Return the checked-out branch, or the beginning of the commit; empty where there is none. Runs no git."""
    return read_branch(cwd, _COMMIT_DIGITS)


def last_told(view: Sequence[Message]) -> dict[str, str]:
    """Return the newest developer text of each kind that the model still sees."""
    told: dict[str, str] = {}
    for message in reversed(view):
        if isinstance(message, DeveloperMessage) and message.kind in KINDS:
            told.setdefault(message.kind, message.text)
            if len(told) == len(KINDS):
                break
    return told


def is_place_due(told: Mapping[str, str], cwd: Path) -> bool:
    """Say whether the model has been told nothing of this place: it is told once, however it changes."""
    here = told.get("environment", "").partition("\n")[0]
    return PLACE_KIND not in told or not f"{here} (".startswith(f"{_HERE}{cwd} (")


def due_messages(
    told: Mapping[str, str], mode_text: str, cwd: Path, now: float, place: str = "", *, agents: str | None = None
) -> list[DeveloperMessage]:
    """Return what has to be told before the next request; `place` is what is to be told where that is due.

    `agents` lists the agents that there are beside the built-in ones (`None`: nothing is to be said of them).
    """
    current = {
        "environment": environment_text(cwd, now),
        PLACE_KIND: place if place and is_place_due(told, cwd) else told.get(PLACE_KIND),
        "mode": mode_text,
        AGENTS_KIND: agents or (NO_AGENTS if agents is not None and told.get(AGENTS_KIND) else None),
    }
    due = ((kind, text) for kind, text in current.items() if text is not None and told.get(kind) != text)
    return [DeveloperMessage(text=text, kind=kind) for kind, text in due]


class ChangedFiles:
    """Notices files that the model has seen and that something else changed since.

    A file's bytes are hashed only when its size or time stamp moved; a changed time stamp alone is no change (R-090).
    """

    def __init__(self) -> None:
        self._stamps: dict[str, tuple[int, int]] = {}
        self._told: dict[str, str] = {}

    def find(self, files: Mapping[str, FileUse]) -> list[str]:
        """Return the paths whose content is no longer what the model saw, each change once."""
        changed: list[str] = []
        for path, use in files.items():
            if not use.sha256:
                continue
            digest = self._digest(path, use.sha256)
            if digest == use.sha256:
                self._told.pop(path, None)  # changed back: the same change would be news again
            elif digest is not None and self._told.get(path) != digest:
                self._told[path] = digest
                changed.append(path)
        return changed

    def told(self, files: Mapping[str, FileUse]) -> list[str]:
        """Return the paths whose change was told and that are still not what the model saw."""
        uses = [files[path] for path in self._told if path in files and files[path].sha256]
        return [use.path for use in uses if self._digest(use.path, use.sha256) not in (None, use.sha256)]

    def settle(self, seen: Mapping[str, str]) -> list[str]:
        """Return the paths whose content is not what the model has `seen` of them, and count them all as told.

        `seen` has the hash of each; empty: the model knows nothing of that file, so a change of it is no news.
        """
        changed: list[str] = []
        for path, digest in seen.items():
            self._stamps.pop(path, None)
            present = self._digest(path, "")
            if present is None:
                continue
            self._told[path] = present
            if digest and present != digest:
                changed.append(path)
        return changed

    def _digest(self, path: str, known: str) -> str | None:
        try:
            stat = Path(path).stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if self._stamps.get(path) == stamp:
                return self._told.get(path, known)
            digest = hashlib.sha256(read_regular(Path(path), limit=max(stat.st_size, MAX_BYTES))).hexdigest()
        except FileNotFoundError:
            return "deleted"
        except (OSError, RefusedFileError):
            return None
        self._stamps[path] = stamp
        return digest


def changed_files_message(paths: Sequence[str]) -> DeveloperMessage:
    """Return the message that names changed files; read them again before editing."""
    names = "\n".join(f"- {path}" for path in paths[:MAX_CHANGED_FILES])
    more = f"\n- and {len(paths) - MAX_CHANGED_FILES} more" if len(paths) > MAX_CHANGED_FILES else ""
    head = "These files changed on disk since you last saw them; read them again before you rely on them:"
    return DeveloperMessage(text=f"{head}\n{names}{more}", kind=FILES_KIND)


def fill_message(path: Sequence[HistoryEvent], tokens: int, trigger: int, *, can_ask: bool) -> DeveloperMessage | None:
    """Return what tells how full the context is; `None` where no mark was passed that was not told since.

    Each mark is told once between two compactions. One that a compaction did not come under counts as told.
    """
    percent = 100 * tokens // trigger
    mark = next((mark for mark in FILL_MARKS if percent >= mark), 0)
    if not mark or _fill_told(path) >= mark:
        return None
    hint = " compact makes one now: good between two parts of the work." if can_ask else ""
    text = f"Context: about {percent} % of what fits before a compaction.{hint}"
    return DeveloperMessage(text=text, kind=FILL_KIND)


def _fill_told(path: Sequence[HistoryEvent]) -> int:
    """Return how full the model was told that the context is, in hundredths of the trigger; 0 where it was not."""
    for entry in newest_of_kind(path, DeveloperMessage, CompactionEntry, ViewEditEntry):
        if isinstance(entry, DeveloperMessage):
            if entry.kind == FILL_KIND and (found := _PERCENT.search(entry.text)):
                return int(found[1])
        elif entry.trigger and (isinstance(entry, CompactionEntry) or entry.rung):
            return 100 * (entry.tokens_after or 0) // entry.trigger
    return 0


def names_in(notes: Sequence[DeveloperMessage], kind: str) -> set[str]:
    """Return what the notes of a kind name, one a line."""
    lines = (line for note in notes if note.kind == kind for line in note.text.splitlines())
    return {line.removeprefix("- ") for line in lines if line.startswith("- ")}


def describe_job(job: Job) -> str:
    """Return one line on a background job."""
    return job.describe() + (f"; its output is in {job.log}" if job.log else "")


def finished_jobs_message(jobs: Sequence[Job]) -> DeveloperMessage:
    """Return the message that tells which background jobs ended."""
    return DeveloperMessage(text="\n".join(f"Background job {describe_job(job)}." for job in jobs), kind=JOBS_KIND)
