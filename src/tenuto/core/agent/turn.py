"""What a turn was lent until it is over.

Approvals, a model and an effort that its command file or skill asks for; another model where one is overloaded.
"""

from __future__ import annotations

from tenuto.core.errors import EXPECTED_FAILURES, UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.terms import KIND, lend
from tenuto.core.state.windows import ModelChange, change_model, find_model, fits, is_too_small
from tenuto.guard.terminal import sanitize_line
from tenuto.model.efforts import EFFORTS
from tenuto.protocol.entry import Terms
from tenuto.protocol.model import ModelError
from tenuto.text.bounding import shorten


async def take_on(live: LiveSession, terms: Terms | None) -> None:
    """A prompt is sent: what an earlier one asked for is over, what this one asks for holds."""
    give_back(live)
    if terms is None:
        return
    lend(live, terms)
    if not (terms.model or terms.effort):
        return
    try:
        change = await _choose_model(live, terms)
    except EXPECTED_FAILURES as error:
        live.notify(f"{terms.by}: {error}; {live.facts.id} answers", "warning", KIND, keep=True)
        return
    if (change.facts.id, change.effort) != (live.facts.id, live.effort):
        change_model(live, change, for_turn=True)
        effort = f" with effort {live.effort}" if live.effort else ""
        live.notify(f"{terms.by}: {live.facts.id}{effort} answers this turn.", kind=KIND, keep=True)


def give_back(live: LiveSession) -> None:
    """The turn is over: nothing of what it was lent holds, and the session's own model answers again."""
    live.lent.clear()
    live.looking.clear()
    own = live.session.state.own_model
    if own is None:
        return
    model, effort = own
    change_model(live, ModelChange(live.model.own or live.models.facts(model), effort))
    effort = f" with effort {live.effort}" if live.effort else ""
    live.notify(f"{live.facts.id}{effort} answers again.", kind=KIND, keep=True)


OUT_OF_ROOM = frozenset({"overloaded", "rate_limit"})
"""Failures that another model may not have."""
FALLBACK_KIND = "fallback"


async def fall_back(live: LiveSession, error: ModelError, tried: set[str]) -> bool:
    """A model has failed in all its attempts: let the next of the settings answer the rest of the turn, if it can.

    `tried` are the models that this step has had; those that cannot be used are told. Whether another one answers.
    """
    failed = live.facts.id
    tried.add(failed)
    if error.kind not in OUT_OF_ROOM:
        return False
    for name in _fallbacks(live):
        try:
            change = await find_model(live, name)
            if change.facts.id in tried:
                continue
            tried.add(change.facts.id)
            if not fits(live, change.facts):
                raise UsageError(f"the conversation is too large for the model {change.facts.id}")
        except EXPECTED_FAILURES as problem:
            live.notify(f"{name} cannot answer for {failed}: {problem}", "warning", FALLBACK_KIND, keep=True)
            continue
        change_model(live, change, for_turn=True)
        why = "is overloaded" if error.kind == "overloaded" else "has reached a rate limit"
        text = f"{failed} {why}; {change.facts.id} answers the rest of this turn."
        live.notify(text, "warning", FALLBACK_KIND, keep=True)
        return True
    return False


def _fallbacks(live: LiveSession) -> tuple[str, ...]:
    """Return the models that may answer for the session's own one: its own list, else that of all models."""
    own = live.settings.models.get((live.model.own or live.facts).id)
    listed = own.fallback if own is not None else None
    return live.settings.request.fallback if listed is None else listed


async def _choose_model(live: LiveSession, terms: Terms) -> ModelChange:
    """Return the model that answers the turn. Raises what says why there is none, also one with too small a window."""
    present = ModelChange(live.facts, live.effort)
    if terms.model:
        wanted = _full_name(live, terms.model)
        found = await find_model(live, wanted)
        is_same = found.facts.id == live.facts.id
        present = ModelChange(found.facts, found.effort or (live.effort if is_same else ""))
        if is_too_small(live, found.facts):
            raise UsageError(f"the conversation is too large for the model {found.facts.id}")
    if terms.effort:
        if terms.effort not in EFFORTS or not live.models.takes(present.facts, terms.effort):
            raise UsageError(f"the model {present.facts.id} has no effort “{shorten(terms.effort, 40)}”")
        present = ModelChange(present.facts, terms.effort)
    return present


def _full_name(live: LiveSession, name: str) -> str:
    """Return a model as provider/name: by the settings, or of the present provider where its name is known.

    Raises `UsageError`.
    """
    named = live.settings.agents.models.get(name, name)
    if "/" in named:
        return named
    if live.models.catalogue.has_name(named):
        return f"{live.facts.provider}/{named}"
    raise UsageError(
        f"there is no model “{shorten(sanitize_line(name), 80)}” ([agents.models] in settings.toml says which one a "
        "name stands for)"
    )
