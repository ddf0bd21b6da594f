"""The dialog of trust: what the project brings, item by item, and what is decided about each."""

from __future__ import annotations

import asyncio

from tenuto.command.outcome import Choice, Choose, CommandOutcome, RowChanged, Say
from tenuto.config.consent import Consent, TrustError
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.trust import Look, Stand, describe, look_at_project
from tenuto.text.figures import plural

ASK, ALLOW, DENY, FORGET, REFUSE, ALL = "ask", "allow", "deny", "forget", "refuse", "all"
MARKS = {"trusted": "✓", "refused": "✗", "waiting": "?", "changed": "?"}
WORDS = {"trusted": "trusted", "refused": "refused", "waiting": "not decided", "changed": "changed since you decided"}
NOTHING = "This project brings nothing that needs your trust."


async def run_trust(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show what the project brings; `allow`, `deny` or `forget` an item, or `all`.

    A row of the list sends the item's id alone, which trusts it, or takes that back. Raises `UsageError` and
    `TaskFailedError`.
    """
    session = runtime.live.session
    look = await asyncio.to_thread(look_at_project, session.cwd, runtime.home, frozenset(session.state.files))
    words = argument.split()
    if look.problem:
        raise TaskFailedError(look.problem)
    if not look.stands:
        return [Say(NOTHING)] if words != [ASK] else []
    if words == [ASK]:
        return [_dialog(look, held=True)] if look.open_items else []
    if not words:
        return [_dialog(look)]
    return await _decide(runtime, look, words)


async def _decide(runtime: Runtime, look: Look, words: list[str]) -> list[CommandOutcome]:
    """Carry out `allow ID`, `ID` or `ID refuse`, and show what came of it."""
    is_row = words[0] not in (ALLOW, DENY, FORGET)
    act, which = ("", words[0]) if is_row else (words[0], " ".join(words[1:]) or ALL)
    found = look.find(which)
    if not found or (is_row and words[1:] not in ([], [REFUSE])):
        raise UsageError(f"“{' '.join(words)}” names nothing that this project brings; /trust lists it")
    if is_row:
        is_trusted = any(stand.item == found[0] and stand.verdict == "trusted" for stand in look.stands)
        act = DENY if words[1:] == [REFUSE] or is_trusted else ALLOW
    if act == ALLOW and (lost := [item for item in found if not item.digest]) and len(lost) == len(found):
        raise UsageError(describe(lost[0]))
    consent = Consent(runtime.home)
    try:
        if act == FORGET:
            consent.forget(look.project, [item.id for item in found])
        else:
            consent.decide(look.project, found, trusted=act == ALLOW)
    except TrustError as error:
        raise TaskFailedError(f"nothing was decided: {error}") from error
    await runtime.follow_trust()
    if is_row:
        stands = [Stand(item, consent.verdict(look.project, item)) for item in found]
        return [RowChanged("trust", stand.item.id, _row(stand)) for stand in stands]
    done = {ALLOW: "Trusted", DENY: "Refused", FORGET: "Forgotten"}[act]
    return [Say(f"{done}: {', '.join(item.label for item in found)}")]


def _dialog(look: Look, *, held: bool = False) -> Choose:
    waiting = len(look.open_items)
    title = f"This project brings {plural(len(look.stands), 'thing')}"
    rows = [Choice("", "Not now", "asked at the next start" if waiting else "all is decided", present=True)]
    if waiting:
        rows += [
            Choice(f"{ALLOW} {ALL}", f"Trust all {len(look.stands)}", "they count, and run, at once"),
            Choice(f"{DENY} {ALL}", f"Refuse all {len(look.stands)}", "asked again when they change"),
        ]
    rows += map(_row, look.stands)
    return Choose(f"{title}. Enter trusts one", "trust", tuple(rows), in_order=True, acts=(REFUSE,), held=held)


def _row(stand: Stand) -> Choice:
    item = stand.item
    preview = f"{item.label} in {item.file}: {item.does}\n{item.content}"
    detail = f"{WORDS[stand.verdict]}: {item.does}"  # one phrase: a long one is cut, not left out
    return Choice(item.id, item.label, detail, mark=MARKS[stand.verdict], preview=preview, stays=True)
