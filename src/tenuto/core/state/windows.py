"""What is believed of a model's window: refusals lower it, requests that were served raise it (R-023).

No number is believed that is under what the same model has served, or under what every request needs (system prompt and
tools). A lower number than the setting's holds for the session. What was learned earlier is tested again before a
prompt is refused because of it.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.prompt import follow_family, instructions_in
from tenuto.model.efforts import EFFORTS
from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.event import ModelChangedEvent
from tenuto.protocol.message import AssistantMessage, SystemMessage
from tenuto.protocol.model import ModelError, ModelFacts
from tenuto.session.session import Session
from tenuto.text.estimate import estimate_text

MIN_DOUBTED = 8_192
"""Tokens: a smaller request is not believed to have been too long for any model."""


def note_served(live: LiveSession, answer: AssistantMessage) -> None:
    """A request was served: its model takes at least as much, whatever a refusal said before."""
    if answer.usage is None or answer.stop_reason == "interrupted":
        return
    sent = answer.usage.sent
    if sent <= live.served_tokens():
        return
    live.model.served[live.facts.id] = sent
    window = live.facts.context_window
    if live.facts.source == "learned" and window is not None and sent > window:
        live.models.forget_window(live.facts.id)
        _take_over(live)


def learn_window(live: LiveSession, error: ModelError) -> None:
    """A text that names what is allowed lowers the window that we know (R-023), and the user is told what holds."""
    if error.limit is None or not names_window(live, error):
        return
    # An output refusal names the room that is left beside the request, an overflow the window itself.
    limit = error.limit + (error.observed or 0) if error.kind == "output_budget" else error.limit
    facts = live.facts
    if not live.models.learn_window(facts.id, limit):
        return
    _take_over(live)
    text = f"{facts.id} takes {limit:,} tokens; that is remembered."
    if facts.source == "settings":
        text = (
            f"{facts.id} takes {limit:,} tokens, and context_window is {facts.context_window:,}: this session goes by "
            f'what the provider says. Change context_window under [models."{facts.id}"] in the settings.'
        )
    live.notify(text, keep=True)


def names_window(live: LiveSession, error: ModelError) -> bool:
    """Say whether an error's limit can be believed.

    A size stands beside it, or the request is not far below it; and it is not under what was served or is needed.
    """
    if error.limit is None:
        return False
    limit = error.limit + (error.observed or 0) if error.kind == "output_budget" else error.limit
    size = live.measure()
    if limit < live.served_tokens() or limit <= size.fixed:
        return False
    return error.observed is not None or (error.kind == "overflow" and size.tokens >= limit // 2)


def doubt_window(live: LiveSession, known: int | None, share: float = 1.0) -> None:
    """A refusal without numbers: for this session the window is not larger than a share of what was refused.

    `known` is the window that the refused request was made for.
    """
    size = live.measure()
    tokens = int(size.tokens * share)
    least = max(MIN_DOUBTED, size.fixed, live.served_tokens())
    if tokens <= least or (known is not None and tokens >= known):
        return
    live.models.believe_window(live.facts.id, tokens)
    _take_over(live)


def learn_from(live: LiveSession, facts: ModelFacts, error: ModelError, tokens: int) -> None:
    """Another request than the session's (a summary's) was too long for a model; `tokens` is its estimated size."""
    if error.kind != "overflow":
        return
    limit = error.limit if error.limit is not None and error.observed is not None else tokens
    if facts.id == live.facts.id and limit <= max(live.measure().fixed, live.served_tokens(), MIN_DOUBTED):
        return
    live.models.believe_window(facts.id, limit)
    if facts.id == live.facts.id:
        _take_over(live)


def forget_learned_window(live: LiveSession) -> bool:
    """Forget a window that was learned before, so that a prompt over it is sent to see; whether there was one."""
    facts = live.facts
    if facts.source != "learned" or live.models.is_named(facts.id):
        return False
    live.models.forget_window(facts.id)
    _take_over(live)
    live.notify(
        f"The prompt is larger than the {facts.context_window or 0:,} tokens that {facts.id} took when it last refused "
        "one; it is sent to see whether that still holds.",
        keep=True,
    )
    return True


def forget_window(live: LiveSession) -> int | None:
    """Drop what refusals of the present model taught; return the window that was believed, `None`: nothing was."""
    forgotten = live.models.forget_window(live.facts.id)
    live.model.served.pop(live.facts.id, None)
    _take_over(live)
    live.publish_usage()
    return forgotten


def where_learned(live: LiveSession) -> str:
    """Return where a learned window stands and how it is dropped; empty for one that was not learned."""
    facts = live.facts
    if facts.source != "learned":
        return ""
    learned = live.models.learned_at(facts.id)
    if learned is None:
        return f"; the window is what {facts.id} named in this session, and /model forget drops it"
    day = datetime.fromtimestamp(learned, UTC).date().isoformat()
    return (
        f"; the window is what {facts.id} named in a refusal on {day}: it stands in {live.models.learned_path}, and "
        "/model forget drops it"
    )


def _take_over(live: LiveSession) -> None:
    """Go by the window that the registry knows now; what else this session knows of the model stays."""
    fresh = live.models.facts(live.facts.id)
    live.model.facts = msgspec.structs.replace(live.facts, context_window=fresh.context_window, source=fresh.source)


def describe_sizes(live: LiveSession, *, refused: bool = False) -> str:
    """Return one line: what is used of the window, and by what. `refused`: so much is more than the model takes."""
    size, budget = live.measure(), live.budget()
    rest = max(0, size.tokens - size.fixed - size.queued)
    window = f"{budget.window:,}" if budget.known else f"an assumed {budget.window:,}"
    rules = round(_instructions(live.session) * size.calibration)
    system = f"{size.system:,} ({rules:,} of it instruction files)" if rules else f"{size.system:,}"
    used = f"{size.tokens:,} tokens were refused" if refused else f"{size.tokens:,} of {window} tokens"
    return f"{used}: system prompt {system}, tools {size.tools:,}, conversation {rest:,}, queued {size.queued:,}"


def _instructions(session: Session) -> int:
    view = session.get_llm_history()
    return estimate_text(instructions_in(view[0].text)) if view and isinstance(view[0], SystemMessage) else 0


def split_model(text: str) -> tuple[str, str]:
    """Split `provider/name[:effort]` into the model and the effort (empty when none is named).

    Names may have colons of their own (`llama3:8b`), so only a known effort counts as one. Raises `UsageError`.
    """
    model, colon, effort = text.strip().rpartition(":")
    if not colon or effort not in EFFORTS:
        model, effort = text.strip(), ""
    provider, slash, name = model.partition("/")
    if not (provider and slash and name):
        raise UsageError(f"“{text}” is not a model; write it as provider/name, for example anthropic/claude-sonnet-5-5")
    return model, effort


class ModelChange(Struct, frozen=True):
    """A model that can be used, and the effort that was asked for with it (empty: none)."""

    facts: ModelFacts
    effort: str = ""


async def find_model(live: LiveSession, text: str) -> ModelChange:
    """Return the model that `provider/name[:effort]` means. Raises `UsageError` or `ModelError`: it cannot be used."""
    model, effort = split_model(text)
    live.models.require(model)
    await live.models.require_name(model)
    facts = await live.models.refresh(model)
    live.models.require_effort(facts, effort)
    return ModelChange(facts, effort)


def is_too_small(live: LiveSession, facts: ModelFacts) -> bool:
    """Say whether what the present model still takes has to be compacted for another one (R-011)."""
    trigger = live.budget(facts).trigger
    return (
        live.settings.compaction.enabled
        and facts.id != live.facts.id
        and trigger < live.budget().trigger
        and live.measure().tokens > trigger
    )


def fits(live: LiveSession, facts: ModelFacts) -> bool:
    """Say whether a request of now leaves another model's window the room for an answer, without a compaction."""
    return live.measure().tokens <= live.budget(facts).trigger


def change_model(live: LiveSession, change: ModelChange, *, for_turn: bool = False) -> None:
    """Use another model from the next request on; `for_turn`: until the turn is over."""
    model, effort = change.facts.id, change.effort
    live.model.own = (live.model.own or live.facts) if for_turn else None
    live.model.facts = change.facts
    live.model.cut_at = 0
    live.compaction.automatic.reset()
    live.compaction.items_refused = False
    state = live.session.state
    if (state.model, state.effort) != (model, effort) or (state.own_model is not None and not for_turn):
        live.session.append(ModelEntry(model=model, effort=effort, for_turn=for_turn))
    follow_family(live)
    live.bus.publish(
        ModelChangedEvent(session_id=live.id, model=model, effort=live.effort, sees_images=live.facts.images)
    )
    live.publish_usage()
