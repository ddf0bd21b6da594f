"""What a turn was lent: approvals, a model and an effort that its command file or skill asks for, until it is over."""

from __future__ import annotations

from tenuto.core.errors import EXPECTED_FAILURES, UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.terms import KIND, lend
from tenuto.core.state.windows import ModelChange, change_model, find_model, is_too_small
from tenuto.guard.terminal import sanitize_line
from tenuto.model.efforts import EFFORTS
from tenuto.protocol.entry import Terms
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
