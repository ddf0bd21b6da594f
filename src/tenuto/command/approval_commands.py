"""Commands on rules and on the workspace: `/approvals`, `/add-dir`. `tenuto approvals` lists and changes the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.config.saved_approvals import SavedApproval, SavedApprovals, SavedApprovalsError, saved_in
from tenuto.config.settings_writer import SettingNotKept, drop_rule, keep_rule
from tenuto.core.errors import TaskFailedError
from tenuto.core.finding import resolve_directory
from tenuto.core.runtime import Runtime
from tenuto.core.state.live import LiveSession
from tenuto.guard.rules import SOURCES, Effect, Rule, RuleError, Source, describe_idle, read_rule, rule_of
from tenuto.protocol.entry import ApprovalEntry, DirectoryEntry

NOTHING = "No rules and no saved approvals. Choose “don't ask again” in an approval, or /approvals add RULE."
HOW = "/approvals add [--ask|--deny] [--project|--always] RULE, as in /approvals add --project bash(pytest *)"
Scope = Literal["session", "project", "always"]
_EFFECTS: dict[str, Effect] = {"--allow": "allow", "--ask": "ask", "--deny": "deny"}
_SCOPES: dict[str, Scope] = {"--session": "session", "--project": "project", "--always": "always"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that stands. `saved` is its row in the file of a directory, `note` why it does not hold."""

    rule: Rule
    saved: SavedApproval | None = None
    note: str = ""

    @property
    def id(self) -> str:
        """A short name that stays the same whatever else is added or taken back."""
        rule, directory = self.rule, self.saved.directory if self.saved else ""
        text = "\0".join((rule.effect, rule.tool, rule.pattern, rule.source, directory))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]

    @property
    def label(self) -> str:
        """Effect and rule."""
        return f"{self.rule.effect} {self.rule.text}"

    def where(self, here: str) -> str:
        """Return where it stands, seen from a directory."""
        elsewhere = self.saved is not None and self.saved.directory != here
        place = self.saved.directory if self.saved and elsewhere else SOURCES[self.rule.source]
        return f"{place}, {self.note}" if self.note else place


def rule_rows(rules: Iterable[Rule], answers: Iterable[ApprovalEntry], saved: SavedApprovals, here: str) -> list[Row]:
    """Return what stands: given rules, a session's answers, those of the directory `here`, then those of others."""
    found = [Row(rule=rule) for rule in rules]
    found += [Row(rule=rule) for answer in answers if (rule := _rule_of(answer)) is not None]
    for each in sorted(saved.all(), key=lambda each: each.directory != here):
        answer = ApprovalEntry(
            tool=each.tool, pattern=each.pattern, form=each.form, effect=each.effect, scope="project"
        )
        rule = _rule_of(answer)
        if rule is not None:
            found.append(Row(rule=rule, saved=each, note="" if each.holds else "but the directory is another one now"))
    return found


def _rule_of(answer: ApprovalEntry) -> Rule | None:
    try:
        return rule_of(answer)
    except RuleError:  # of a later version
        return None


class Change(msgspec.Struct, frozen=True):
    """A rule that is to be added, and for how long."""

    effect: Effect
    text: str
    scope: Scope


def read_change(argument: str) -> Change:
    """Return what the words behind `add` say. Raises `RuleError`."""
    effect: Effect = "allow"
    scope: Scope = "session"
    rest = argument.strip()
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        rest = rest.strip()
        if word in _EFFECTS:
            effect = _EFFECTS[word]
        elif word in _SCOPES:
            scope = _SCOPES[word]
        else:
            raise RuleError(f"“{word}” is not an option: {HOW}")
    if not rest:
        raise RuleError(f"which rule? {HOW}")
    return Change(effect, read_rule(rest, effect).text, scope)


async def run_approvals(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the rules, add one, or take one back. Raises `TaskFailedError` when that cannot be written."""
    live = runtime.live
    word, _, rest = argument.strip().partition(" ")
    try:
        if word == "add":
            return [_add(live, read_change(rest))]
        if word == "remove":
            return [_remove(live, _rows(live), rest.strip())]
    except RuleError as error:
        return [Say(str(error), "warning")]
    except (SavedApprovalsError, SettingNotKept) as error:
        raise TaskFailedError(f"not changed: {error}") from error
    if live.saved_approvals.problem:
        return [Say(live.saved_approvals.problem, "warning")]
    rows, here = _rows(live), str(live.tool_context.workspace)
    if not rows:
        return [Say(NOTHING)]
    choices = tuple(
        Choice(f"remove {row.id}", f"{number}. {row.label}", row.where(here), preview=row.label)
        for number, row in enumerate(rows, 1)
    )
    leave = Choice("", "Keep all", "", present=True)
    return [Choose("Rules: Enter revokes one", "approvals", (leave, *choices))]


def _rows(live: LiveSession) -> list[Row]:
    here = str(live.tool_context.workspace)
    return rule_rows(live.given, live.session.state.approvals, live.saved_approvals, here)


def _add(live: LiveSession, change: Change) -> Say:
    rule = read_rule(change.text, change.effect)
    entry = ApprovalEntry(tool=rule.tool, pattern=rule.pattern, form="rule", effect=rule.effect)
    source: Source
    match change.scope:
        case "session":
            live.session.append(entry)
            source = "session"
        case "project":
            live.saved_approvals.add(saved_in(live.tool_context.workspace, entry))
            source = "project"
        case "always":
            keep_rule(live.home, rule.effect, rule.text)
            live.given.append(rule)
            source = "settings"
    added = f"Added: {msgspec.structs.replace(rule, source=source).origin}"
    idle = describe_idle(rule)
    return Say(f"{added}\n{idle[0].upper()}{idle[1:]}." if idle else added)


def _remove(live: LiveSession, rows: Sequence[Row], which: str) -> Say:
    texts = (which, f"allow {which}")
    found = [row for number, row in enumerate(rows, 1) if which in (row.id, str(number)) or row.label in texts]
    if not found:
        return Say(f"“{which}” is not the number of a rule; /approvals lists them", "warning")
    row = found[0]
    match row.rule.source:
        case "settings":
            drop_rule(live.home, row.rule.effect, row.rule.text)
            live.given.remove(row.rule)
        case "option":
            return Say("That rule is of the command line: it ends with this run.", "warning")
        case "session":
            _withdraw(live, row.rule)
        case "turn":
            return Say("That rule ends with the turn.", "warning")
        case "project":
            if row.saved is not None:
                live.saved_approvals.remove(row.saved)
    return Say(f"Revoked: {row.label}")


def _withdraw(live: LiveSession, rule: Rule) -> None:
    for answer in live.session.state.approvals:
        if _rule_of(answer) == rule:
            live.session.append(msgspec.structs.replace(answer, seq=0, ts=0.0, withdrawn=True))


async def run_add_dir(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Have a directory count as workspace; `remove DIR` takes it out again, without a name they are listed."""
    live, named = runtime.live, argument.strip()
    if not named:
        listed = "\n".join(live.tool_context.places)
        return [Say(f"{listed}\n/add-dir DIR adds one for this session, /add-dir remove DIR takes it out.")]
    if named.startswith("remove "):
        return [_take_out(live, named.removeprefix("remove ").strip())]
    place = str(resolve_directory(named, live.session.cwd).resolve())
    if live.tool_context.place_of(place):
        return [Say(f"{place} is part of the workspace already.", "warning")]
    live.session.append(DirectoryEntry(path=place))
    return [Say(f"Part of the workspace now: {place}")]


def _take_out(live: LiveSession, named: str) -> Say:
    present = live.session.state.directories
    place = named if named in present else str(resolve_directory(named, live.session.cwd).resolve())
    if place not in present:
        there = ", ".join(present) or "there are none"
        return Say(f"{place} is not one of the added directories: {there}", "warning")
    live.session.append(DirectoryEntry(path=place, withdrawn=True))
    return Say(f"No longer part of the workspace: {place}")
