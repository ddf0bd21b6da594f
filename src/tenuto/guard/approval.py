"""Whether a call may run, must be asked for, or is refused. Pure: the subject carries everything that was looked up.

| mode | reads inside | edits inside | commands | network | outside the workspace |
|---|---|---|---|---|---|
| ask | yes | ask | ask (but those that only read) | ask | ask |
| edits | yes | yes | ask (but those that only read) | ask | ask |
| auto | yes | yes | in the sandbox; outside of it ask | yes | reads yes, writes ask |
| plan | yes | refuse | refuse (but those that only read) | ask | reads ask |

A tool of an MCP server asks in `ask` and `edits`, runs in `auto`, and is refused in `plan`, unless a rule of the user's
allows it, or all of its server. That a server says of a tool that it only reads is the word of a stranger: it is shown
with the question, and decides nothing. A tool of an extension is judged in the same way, but its word that it only
reads counts: the extension could do everything anyhow.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.guard.kinds import kinds_of
from tenuto.guard.rules import Rule, covering, seen_from, touching
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse, Verdict, is_inside
from tenuto.protocol.entry import Mode

_DENY_TEXT = (
    "The user's own rule denies this {tool} call, in every mode: {rule}. Nothing was run. Do not go round it: do "
    "without it, or say what you would need it for."
)
_ASKS_WITHOUT_SANDBOX = "mode auto asks like edits without a sandbox; --no-sandbox does without one"
_PLAN_TEXT = (
    "Plan mode is on: nothing may be changed and no command may be run, so this {tool} call was refused. Look around "
    "with read, grep, glob and commands that only read, then end your answer with the finished plan between lines "
    "<proposed_plan> and </proposed_plan>: the user approves it, or chooses another mode (/mode, "
    "--mode), and the work may begin."
)

_PLAN_SERVER_TEXT = (
    "Plan mode is on, and nobody knows what {tool} of an MCP server changes, so the call was refused. Do without it; "
    "the user can allow it with /mcp allow, or choose another mode."
)


def judge(mode: Mode, subject: ApprovalSubject, rules: Sequence[Rule], places: Sequence[str]) -> Verdict:
    """Return the verdict. `places` are real paths, the workspace first; `rules` are the user's, settled there."""
    if subject.kind == "none":
        return Allow(reason="needs no approval")
    denies = touching(rules, "deny", subject)
    if denies is not None:
        why = f"your rule denies it: {denies.origin}"
        return Refuse(reason=_DENY_TEXT.format(tool=subject.tool, rule=denies.origin), why=why, rule=denies.text)
    if mode == "plan" and subject.kind in {"edit", "execute"} and not reads_only(subject):
        return Refuse(reason=_PLAN_TEXT.format(tool=subject.tool), why="plan mode changes nothing")
    if mode == "plan" and subject.kind == "mcp" and not covering(rules, subject, places[0]):
        return Refuse(reason=_PLAN_SERVER_TEXT.format(tool=subject.tool), why="plan mode calls no MCP servers")
    if mode == "plan" and _may_change(subject) and not covering(rules, subject, places[0]):
        return Refuse(reason=_PLAN_TEXT.format(tool=subject.tool), why="plan mode changes nothing")
    asks = touching(rules, "ask", subject)
    if asks is not None:
        return Ask(reason=f"your rule asks: {asks.origin}", rule=asks.text)
    reason = _reason_to_ask(mode, subject, places)
    if not reason:
        return Allow(reason=_reason_to_allow(mode, subject))
    standing = covering(rules, subject, places[0])
    if standing:
        named = ", ".join(rule.origin for rule in standing)
        return Allow(reason=f"your rule allows it: {named}", rule=", ".join(rule.text for rule in standing))
    return Ask(reason=reason, kinds=kinds_of(subject, places), allowed_by=_allowing_mode(subject, places))


def judge_unheld(subject: ApprovalSubject, rules: Sequence[Rule], places: Sequence[str]) -> Verdict:
    """Return the verdict of mode `auto` where no sandbox holds commands, and the user has not done without one."""
    verdict = judge("edits", subject, rules, places)
    if not isinstance(verdict, Ask) or verdict.rule:
        return verdict
    return msgspec.structs.replace(verdict, reason=f"{verdict.reason}; {_ASKS_WITHOUT_SANDBOX}", allowed_by=None)


def _may_change(subject: ApprovalSubject) -> bool:
    """Whether it is a call of an extension's tool that does not only read."""
    return subject.kind == "extension" and not subject.reads


def _reason_to_allow(mode: Mode, subject: ApprovalSubject) -> str:
    if subject.kind == "extension" and subject.reads:
        return "its extension says that it only reads"
    if reads_only(subject):
        return "only reads, inside the working directory"
    if subject.kind == "read":
        return "reads inside the working directory"
    return f"mode: {mode}, in the sandbox" if subject.confined else f"mode: {mode}"


def _allowing_mode(subject: ApprovalSubject, places: Sequence[str]) -> Mode | None:
    """Return the mildest mode that would not ask."""
    if not _reason_to_ask("edits", subject, places):
        return "edits"
    return None if _reason_to_ask("auto", subject, places) else "auto"


def refusal_text(verdict: Ask, subject: ApprovalSubject, root: str) -> str:
    """Return what the model is told when nobody can be asked: what would allow the call (DESIGN section 8)."""
    said = f"This {subject.tool} call needs approval and nobody can be asked in this run: {verdict.reason}."
    return f"{said} {_ways_to_allow(verdict, subject, root)}"


def rules_to_allow(verdict: Ask, root: str) -> tuple[str, ...]:
    """Return the rules that would let a call run that is asked about, as they are written in the workspace `root`."""
    return tuple(seen_from(rule, root) for rule in verdict.kinds[0].rules) if verdict.kinds else ()


def _ways_to_allow(verdict: Ask, subject: ApprovalSubject, root: str) -> str:
    """Return which mode and which rule would let a call run that nobody can be asked about."""
    if verdict.rule:
        return "No mode and no other rule goes before a rule that asks."
    if verdict.allowed_by is not None:
        mode = f"Mode {verdict.allowed_by} would allow it (--mode {verdict.allowed_by})"
    elif subject.kind in {"edit", "execute"}:
        mode = "No mode allows it without a user; stay inside the workspace"
    else:
        mode = "No mode allows it without a user; do without it"
    if not verdict.kinds:
        return f"{mode}."
    import shlex

    rules = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules_to_allow(verdict, root))
    return f"{mode}, or the rule {rules}."


def _reason_to_ask(mode: Mode, subject: ApprovalSubject, places: Sequence[str]) -> str:
    """Return why a user has to decide, empty when nobody has to."""
    if subject.kind == "execute":
        return _reason_for_command(mode, subject)
    if subject.concerns:
        return "; ".join(subject.concerns)
    if subject.kind == "mcp":
        return "" if mode == "auto" else f"calls a tool of an MCP server (mode: {mode})"
    if subject.kind == "extension":
        return "" if mode == "auto" or subject.reads else f"calls a tool of an extension (mode: {mode})"
    if subject.kind == "network":
        return "" if mode == "auto" else f"sends a request to {subject.pattern}"
    outside = [path for path in subject.paths if not _is_in(path, places)]
    if outside and (subject.kind == "edit" or mode != "auto"):
        verb = "writes" if subject.kind == "edit" else "reads"
        return f"{verb} outside the workspace: {', '.join(outside)}"
    if subject.kind == "edit" and mode == "ask":
        return f"changes {'a file' if len(subject.paths) < 2 else 'files'} (mode: ask)"
    return ""


def _reason_for_command(mode: Mode, subject: ApprovalSubject) -> str:
    if subject.leaves_sandbox:
        return f"runs outside the sandbox: {subject.leaves_sandbox}"
    if mode == "auto":
        return "" if subject.confined else _reason_where_nothing_holds(subject)
    if reads_only(subject):
        return ""
    return subject.reason or f"runs a command (mode: {mode})"


def _reason_where_nothing_holds(subject: ApprovalSubject) -> str:
    """Return why a command asks in mode `auto` without a sandbox, which the user has switched off."""
    if subject.problem:
        return f"runs a command that cannot be understood: {subject.problem}"
    if subject.writes:
        return f"writes outside the workspace, or to protected files: {', '.join(subject.writes)}"
    return ""


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(is_inside(path, place) for place in places)


_LOOKING_TEXT = "This agent only looks: this {tool} call was refused. Report what you found; another one makes changes."


def refuse_change(subject: ApprovalSubject) -> Refuse | None:
    """Return the refusal of a call by an agent that may only look, `None` for a call that is judged like any other."""
    if not _may_change(subject) and (subject.kind not in {"edit", "execute", "mcp"} or reads_only(subject)):
        return None
    return Refuse(reason=_LOOKING_TEXT.format(tool=subject.tool), why="the agent only looks")


def reads_only(subject: ApprovalSubject) -> bool:
    """Whether a command only reads, and only what may be read unasked."""
    return subject.kind == "execute" and subject.reads and not subject.leaves_sandbox
