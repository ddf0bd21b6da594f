"""The request that the present view makes, for a step and for a summary that shares its prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tenuto.compaction.measure.budget import MIN_OUTPUT
from tenuto.compaction.measure.meter import ContextSize
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.protocol.entry import Level
from tenuto.protocol.message import Message, NoticeEntry
from tenuto.protocol.model import (
    WEB_SEARCH,
    ModelRequest,
    RemoteCompactor,
    RemoteWay,
    ServerContext,
    ServerEdit,
    WebSearchUse,
)
from tenuto.session.view.tree import newest_of_kind

MIN_CLEAR_OVER = 50_000
"""Tokens: in a smaller request old results are not worth the prefix cache that leaving them out costs."""
CLEAR_SHARE = 0.3
MIN_CLEARED = 12_500
CLEARED_SHARE = 0.05
EDIT_KIND = "server_edit"
IGNORED_KIND = "server_ignored"
DROPPED_KIND = "server_dropped"


def server_context(live: LiveSession) -> ServerContext:
    """Return what the user lets this model's provider do.

    `[models] remote_compaction` decides; where it is unset, `compaction.remote` does for every provider that has a
    compaction of its own.
    """
    settings, budget = live.settings, live.budget()
    own = settings.models.get(live.facts.id)
    chosen = _chosen_compaction(live)
    server = ServerContext(
        compaction="request" if chosen == "automatic" else chosen,
        compact_over=budget.target if chosen == "automatic" and settings.compaction.enabled else 0,
    )
    if own is None or not own.clear_tool_uses:
        return server
    return ServerContext(
        compaction=server.compaction,
        compact_over=server.compact_over,
        clear_over=min(max(MIN_CLEAR_OVER, int(CLEAR_SHARE * budget.window)), budget.target),
        clear_at_least=max(MIN_CLEARED, int(CLEARED_SHARE * budget.window)),
    )


def _chosen_compaction(live: LiveSession) -> RemoteWay | Literal["automatic"]:
    own = live.settings.models.get(live.facts.id)
    if live.compaction.items_refused:
        return "off"
    if own is not None and own.remote_compaction:
        return own.remote_compaction
    can = live.settings.compaction.remote and isinstance(live.models.client(live.facts.provider), RemoteCompactor)
    return "request" if can else ""


def tell_edit(live: LiveSession, edit: ServerEdit) -> None:
    """Tell the user, once a session, that the server left old results out of a request."""
    text = (
        f"{live.facts.provider} left {edit.cleared_results} old tool results ({edit.cleared_tokens:,} tokens) out of "
        "what the model reads, as clear_tool_uses asks for. The session keeps them; this is not said again."
    )
    _tell_once(live, EDIT_KIND, text, "info")


def tell_ignored(live: LiveSession, field: str) -> None:
    """Tell the user, once a session, that the server does not know what the settings ask it for."""
    text = (
        f"{live.facts.provider} does not take {field}, which the settings of {live.facts.id} ask for; the context is "
        "kept small here instead."
    )
    _tell_once(live, IGNORED_KIND, text, "warning")


def web_search_use(live: LiveSession) -> WebSearchUse:
    """Return whether the next request has the provider's web search. In mode plan it is off: it leaves the machine."""
    if not live.models.has_web_search(live.facts.id) or is_search_refused(live):
        return ""
    return "off" if live.mode == "plan" else "on"


def is_search_refused(live: LiveSession) -> bool:
    """Say whether the server has refused the web search in this process."""
    return f"{DROPPED_KIND}.{WEB_SEARCH}" in live.notified


WEB_SEARCH_WORDS: dict[WebSearchUse, str] = {
    "": "",
    "on": "on: the provider's own tool; nobody is asked before a search",
    "off": "off in mode plan",
}


def describe_web_search(live: LiveSession) -> str:
    """Return what a user has to know of the provider's web search; empty where there is none."""
    if live.models.has_web_search(live.facts.id) and is_search_refused(live):
        return f"refused by {live.facts.provider}"
    return WEB_SEARCH_WORDS[web_search_use(live)]


def tell_dropped(live: LiveSession, field: str) -> None:
    """Tell the user, once a session, that a field of the request is left out because the server refused it."""
    if field == WEB_SEARCH:
        text = f"{live.facts.provider} does not offer its web search here; requests leave it out from now on."
        _tell_once(live, f"{DROPPED_KIND}.{field}", text, "info")
        return
    text = f"{live.facts.provider} does not take the field {field}; requests leave it out from now on."
    _tell_once(live, f"{DROPPED_KIND}.{field}", text, "info")


def _tell_once(services: SessionServices, kind: str, text: str, level: Level) -> None:
    if kind in services.notified:
        return
    services.notified.add(kind)
    if not any(entry.kind == kind for entry in newest_of_kind(services.session.path(), NoticeEntry)):
        services.notify(text, level, kind, keep=True)


RAISED = 4
"""Times the limit by which a server of its own cut off an answer: so much is asked for from then on."""


def _output_limit(live: LiveSession, size: ContextSize) -> int | None:
    """Return the output limit of the next request (R-007); `None`: the server's own holds, until it was too low."""
    budget = live.budget()
    limit = budget.output_for(size.tokens, size.uncounted)
    if limit is None and live.model.cut_at:
        return max(MIN_OUTPUT, min(RAISED * live.model.cut_at, budget.room_behind(size.tokens, size.uncounted)))
    return limit


def build_request(
    live: LiveSession, view: Sequence[Message] | None = None, size: ContextSize | None = None
) -> ModelRequest:
    """Return the request for the present view, or for another one of that size.

    Its output budget is what the window leaves (R-007).
    """
    size = live.measure() if size is None else size
    return ModelRequest(
        model=live.facts,
        messages=tuple(live.session.get_llm_history() if view is None else view),
        tools=live.tool_schemas(),
        max_output_tokens=_output_limit(live, size),
        effort=live.effort,
        cache_key=live.id,
        server=server_context(live),
        web_search=web_search_use(live),
    )
