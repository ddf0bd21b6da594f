"""Whether a call may run, must be asked for, or is refused. Pure: the subject carries everything that was looked up.

| mode | reads inside | edits inside | commands | network | outside the workspace |
|---|---|---|---|---|---|
| ask | yes | ask | ask (but simple read-only ones) | ask | ask |
| edits | yes | yes | ask (but simple read-only ones) | ask | ask |
| auto | yes | yes | yes | yes | reads yes, writes ask |
| plan | yes | refuse | refuse (but simple read-only ones) | ask | reads ask |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tenuto.guard.commands import fits, is_read_only, outside_writes
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse, Verdict, is_inside, resolve_path
from tenuto.protocol.entry import ApprovalEntry, Mode

__all__ = ["Allow", "ApprovalSubject", "Ask", "Refuse", "Verdict", "judge", "refusal_text"]

_KINDRED = (frozenset({"write", "edit", "apply_patch"}), frozenset({"read", "grep", "glob"}))
"""Tools that one lasting answer serves."""
_PLAN_TEXT = (
    "Plan mode is on: nothing may be changed and no command may be run, so this {tool} call was refused. Look around "
    "with read, grep, glob and simple read-only commands, then end your answer with the finished plan between lines "
    "<proposed_plan> and </proposed_plan>: the user approves it, or chooses another mode (/mode, "
    "--mode), and the work may begin."
)


def judge(mode: Mode, subject: ApprovalSubject, approvals: Iterable[ApprovalEntry], workspace: Path) -> Verdict:
    """Return the verdict. `workspace` is a real path; `approvals` are the user's "always" answers."""
    if subject.kind == "none":
        return Allow()
    root = str(workspace)
    if mode == "plan" and subject.kind in {"edit", "execute"} and not reads_only(subject, root):
        return Refuse(reason=_PLAN_TEXT.format(tool=subject.tool))
    reason = _reason_to_ask(mode, subject, root)
    if not reason or any(_covers(entry, subject) for entry in approvals):
        return Allow()
    return Ask(reason=reason, session_pattern=subject.pattern, allowed_by=_allowing_mode(subject, root))


RULED_TOOLS = ("apply_patch", "bash", "edit", "fetch", "glob", "grep", "read", "write")


class RuleError(Exception):
    """A rule that cannot be read; the text says what is wrong."""


def read_rule(text: str, cwd: Path) -> ApprovalEntry:
    """Return what a rule like `bash(pytest *)`, `edit(src/**)`, `fetch(example.org)` or `bash` allows.

    Paths are relative to `cwd`; without a pattern the tool may do all that it could be asked for in the workspace.
    """
    import shlex

    from tenuto.text.matching import did_you_mean

    tool, bracket, rest = text.strip().partition("(")
    if tool not in RULED_TOOLS or (bracket and not rest.endswith(")")):
        hint = did_you_mean(tool, RULED_TOOLS)
        raise RuleError(f"“{text}”: write it as tool or tool(pattern); the tools are {', '.join(RULED_TOOLS)}{hint}")
    pattern = rest.removesuffix(")").strip() or "*"
    if tool == "bash":
        try:
            shlex.split(pattern)
        except ValueError as error:
            raise RuleError(f"“{text}”: {error}") from None
    elif tool != "fetch":
        place, is_tree = pattern.removesuffix("**").removesuffix("/"), pattern.endswith("**")
        is_tree |= pattern == "*"
        try:
            path = resolve_path("." if pattern in {"*", "**"} else place or "/", cwd)
        except (OSError, ValueError, RuntimeError) as error:
            raise RuleError(f"“{text}”: {error}") from None
        pattern = f"{'' if str(path) == '/' else path}/**" if is_tree else str(path)
    return ApprovalEntry(tool=tool, pattern=pattern, scope="run")


def _allowing_mode(subject: ApprovalSubject, root: str) -> Mode | None:
    """Return the mildest mode that would not ask."""
    if not _reason_to_ask("edits", subject, root):
        return "edits"
    return None if _reason_to_ask("auto", subject, root) else "auto"


def refusal_text(verdict: Ask, subject: ApprovalSubject) -> str:
    """Return what the model is told when nobody can be asked: what would allow the call (DESIGN section 8)."""
    if verdict.allowed_by is not None:
        way = f"Mode {verdict.allowed_by} would allow it (--mode {verdict.allowed_by})."
    elif subject.kind in {"edit", "execute"}:
        way = "No mode allows it without a user; stay inside the workspace."
    else:
        way = "No mode allows it without a user; do without it."
    return f"This {subject.tool} call needs approval and nobody can be asked in this run: {verdict.reason}. {way}"


def _covers(entry: ApprovalEntry, subject: ApprovalSubject) -> bool:
    """Whether a lasting answer allows a call."""
    kindred = any({entry.tool, subject.tool} <= group for group in _KINDRED)
    if entry.tool != subject.tool and not kindred:
        return False
    if entry.scope == "run" and subject.kind == "execute":
        return fits(entry.pattern, subject.detail)
    if entry.scope == "run" and subject.kind == "network":
        return entry.pattern in {"*", subject.pattern, subject.pattern.partition("://")[2]}
    if subject.kind not in {"read", "edit"}:
        return entry.pattern == subject.pattern
    if entry.pattern.endswith("/**") and not subject.concerns:
        place = entry.pattern.removesuffix("/**") or "/"
        return bool(subject.paths) and all(is_inside(path, place) for path in subject.paths)
    return subject.paths == (entry.pattern,)


def _reason_to_ask(mode: Mode, subject: ApprovalSubject, root: str) -> str:
    """Return why a user has to decide, empty when nobody has to."""
    if subject.kind == "execute":
        return _reason_for_command(mode, subject, root)
    if subject.concerns:
        return "; ".join(subject.concerns)
    if subject.kind == "network":
        return "" if mode == "auto" else f"sends a request to {subject.pattern}"
    outside = [path for path in subject.paths if not is_inside(path, root)]
    if outside and (subject.kind == "edit" or mode != "auto"):
        verb = "writes" if subject.kind == "edit" else "reads"
        return f"{verb} outside the workspace: {', '.join(outside)}"
    if subject.kind == "edit" and mode == "ask":
        return f"changes {'a file' if len(subject.paths) < 2 else 'files'} (mode: ask)"
    return ""


def _reason_for_command(mode: Mode, subject: ApprovalSubject, root: str) -> str:
    if mode == "auto":
        places = outside_writes(subject.detail, root)
        return f"writes outside the workspace: {', '.join(places)}" if places else ""
    if reads_only(subject, root):
        return ""
    return "; ".join(subject.concerns) or f"runs a command (mode: {mode})"


_LOOKING_TEXT = "This agent only looks: this {tool} call was refused. Report what you found; another one makes changes."


def refuse_change(subject: ApprovalSubject, workspace: Path) -> Refuse | None:
    """Return the refusal of a call by an agent that may only look, `None` for a call that is judged like any other."""
    if subject.kind not in {"edit", "execute"} or reads_only(subject, str(workspace)):
        return None
    return Refuse(reason=_LOOKING_TEXT.format(tool=subject.tool))


def reads_only(subject: ApprovalSubject, root: str) -> bool:
    """Whether a command is a simple one that only reads, and only inside the workspace."""
    return (
        subject.kind == "execute"
        and not subject.concerns
        and is_read_only(subject.detail)
        and all(is_inside(path, root) for path in subject.paths)
    )
