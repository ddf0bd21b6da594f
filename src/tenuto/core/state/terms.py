"""What a command file or a skill asks for a turn: approvals, a model, an effort. `core/agent/turn.py` lends it.

A project's file gets nothing of it until the user trusts the file (`config/programs.py`). Nothing here loosens what a
rule denies, what a rule asks about, or mode `plan`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.config.commands import CommandFile
from tenuto.config.places import Origin
from tenuto.config.programs import UNASKED
from tenuto.config.skills import Skill
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.guard.rules import Rule, RuleError, read_rule
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Terms
from tenuto.text.bounding import shorten

KIND = "terms"
"""The kind of notices that say what holds for a turn, and that it is over."""
MAX_RULES = 50
SHOWN_CHARS = 200


def terms_of(services: SessionServices, file: CommandFile | Skill) -> Terms | None:
    """Return what a file asks for its turn, `None` for nothing. What of it cannot be had is said once."""
    if not file.wishes:
        return None
    by = f"/{file.name}"
    if file.is_withheld:
        text = f"{by} asks for more ({'; '.join(file.wishes)}), which does not count until you trust it: /trust"
        services.notify_once(f"withheld {file.path}", shorten(sanitize_line(text), SHOWN_CHARS))
        return None
    allows, left_out = read_allowed(file.allowed_tools, file.origin)
    if left_out:
        text = f"{by}: allowed-tools has what cannot be allowed here: {', '.join(left_out)}"
        services.notify_once(f"allowed-tools {file.path}", shorten(sanitize_line(text), SHOWN_CHARS), "warning")
    model = "" if file.model == "inherit" else file.model
    terms = Terms(by=by, allows=allows, model=model, effort=file.effort)
    return terms if allows or model or file.effort else None


def read_allowed(words: Sequence[str], origin: Origin) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules that words of `allowed-tools` are, and the words that are none. Pure.

    No file lets a call leave the sandbox, and a project's none reach files outside the project.
    """
    allows: list[str] = []
    left_out: list[str] = []
    for word in words[:MAX_RULES]:
        if word.casefold() in UNASKED:
            continue
        try:
            rule = read_rule(word, source="turn")
        except RuleError:
            left_out.append(word)
            continue
        if rule.is_outside or (origin == "project" and rule.tool in {"edit", "read"} and _leads_out(rule.pattern)):
            left_out.append(word)
        else:
            allows.append(rule.text)
    return tuple(dict.fromkeys(allows)), (*left_out, *words[MAX_RULES:])


def _leads_out(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or ".." in pattern.split("/")


def rules_of(terms: Terms | None) -> list[Rule]:
    """Return the rules of what is asked for."""
    return [read_rule(text, source="turn") for text in terms.allows] if terms is not None else []


def lend(live: LiveSession, terms: Terms) -> None:
    """Let run unasked what terms allow, and nothing that changes anything where they only look, for the turn."""
    if terms.only_looks:
        live.looking.append(terms.by)
        live.notify(f"{terms.by} only looks: nothing is changed in this turn.", kind=KIND, keep=True)
    known = {rule.text for rule in live.lent}
    added = [rule for rule in rules_of(terms) if rule.text not in known]
    if added:
        live.lent.extend(added)
        named = shorten(sanitize_line(", ".join(rule.text for rule in added)), SHOWN_CHARS)
        live.notify(f"{terms.by} allows for this turn: {named}", kind=KIND, keep=True)
