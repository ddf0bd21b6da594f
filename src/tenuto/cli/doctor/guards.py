"""Checks of what stands between the agent and the machine: the sandbox, the rules, and what a project waits for."""

from __future__ import annotations

import asyncio
import sys

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.cli.sandboxing import describe_machine, describe_network
from tenuto.config.saved_approvals import FILE, SavedApprovals
from tenuto.core.state.trust import look_at_project
from tenuto.guard.rules import RuleError, read_rules, rule_of
from tenuto.text.figures import plural

MAX_NAMED = 10
_BUBBLEWRAP = "install bubblewrap (apt install bubblewrap), or the extra tenuto[sandbox]"


async def check_sandbox(place: Surroundings) -> list[Row]:
    """Tell what holds the commands of the model, and how mode `auto` behaves where nothing does."""
    from tenuto.guard.sandbox.machine import find_machine

    wishes = place.settings.sandbox
    holds, said = await asyncio.to_thread(describe_machine, wishes)
    if holds:
        network = await asyncio.to_thread(describe_network, wishes)
        if network.fault:
            return [Row("sandbox", f"{said}; {network.found}: {network.fault}", "note", network.do)]
        if find_machine(wishes.kind).weakness:
            return [Row("sandbox", f"{said}; {network.found}", "note", _BUBBLEWRAP)]
        return [Row("sandbox", f"{said}; {network.found}")]
    if not wishes.enabled:
        where = place.where(("sandbox", "enabled"))
        found = f"{said}; mode auto runs commands with your rights"
        return [Row("sandbox", found, "note", f"remove sandbox.enabled = false ({where})")]
    return [Row("sandbox", f"{said}; mode auto asks as edits does", "note", _how_to_get_one(wishes.kind))]


def _how_to_get_one(kind: str) -> str:
    if kind != "auto":
        return f"remove sandbox.kind = {kind}: another kind may work here"
    if sys.platform.startswith("linux"):
        return _BUBBLEWRAP
    return "use Linux or macOS for a sandbox; --no-sandbox lets mode auto do without one"


async def check_approvals(place: Surroundings) -> list[Row]:
    """Tell how many rules there are, and those that cannot be read."""
    own, saved = place.settings.approvals, SavedApprovals(place.home / FILE)
    rules, problems = read_rules({"allow": own.allow, "ask": own.ask, "deny": own.deny}, "settings")
    rows = [Row("approvals", problem, "problem", "change or remove it under [approvals]") for problem in problems]
    answers = saved.all()
    for answer in answers:
        try:
            rule_of(answer.entry)
        except RuleError as error:
            found = f"the rule to {answer.effect} saved for {place.short(answer.directory)} {error}; it holds nowhere"
            rows.append(Row("approvals", found, "problem", f"remove it from {FILE}, or with /approvals"))
    if saved.problem:
        rows.append(Row("approvals", place.short(saved.problem), "problem", f"repair {FILE}, or remove it"))
    here = len(saved.of(place.cwd))
    counted = (
        f"{plural(len(rules), 'rule')} in your settings, {len(answers)} saved for directories, {here} of them here"
    )
    return [*rows, Row("approvals", counted)]


async def check_trust(place: Surroundings) -> list[Row]:
    """Tell what the project here brings, and what of it waits for a decision; values are not shown."""
    look = await asyncio.to_thread(look_at_project, place.cwd, place.home)
    rows: list[Row] = []
    if look.problem:
        rows.append(Row("trust", place.short(look.problem), "problem", "repair that file (chmod 600), or remove it"))
    if waiting := look.open_items:
        details = [f"{item.label} ({item.file})" for item in waiting[:MAX_NAMED]]
        details += [f"and {len(waiting) - MAX_NAMED} more"] if waiting[MAX_NAMED:] else []
        do = "tenuto trust shows what it would do; tenuto trust allow or deny decides"
        rows.append(
            Row("trust", f"{plural(len(waiting), 'thing')} of this project not used", "note", do, tuple(details))
        )
    decided = len(look.stands) - len(waiting)
    if not rows:
        brings = f"{plural(decided, 'thing')} of this project, all decided" if decided else "nothing here needs it"
        rows.append(Row("trust", brings))
    return rows
