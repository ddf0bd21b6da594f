"""What the server keeps of a request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from tenuto.evaluation.scripted import CHARACTERS, Counter
from tests.server import anthropic_wire, chat_wire, gemini_wire, responses_wire
from tests.server.item import Item
from tests.server.openai_compaction import ENDPOINT, is_triggered

Protocol = Literal["anthropic", "responses", "chat", "gemini"]
WIRES = {"anthropic": anthropic_wire, "responses": responses_wire, "chat": chat_wire, "gemini": gemini_wire}


@dataclass(slots=True)
class Request:
    """One request. `index` counts the model calls from 0 (-1: none). Times are monotonic seconds, 0.0: not yet.

    `received_first` is the first byte, `received` the last byte of the body; `started` the first byte of the
    response, `ended` its last. `aborted`: the client left before the end. `refused`: why it got a 4xx by our checks.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    kind: Literal["model", "count", "models", "other"] = "other"
    protocol: Protocol = "chat"
    index: int = -1
    received_first: float = 0.0
    received: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    status: int = 0
    aborted: bool = False
    refused: str = ""
    raw_size: int = 0
    tools: int = 0
    """How many tools a model call offered; what has none is a title or a summary."""
    cloud: str = ""
    target: str = ""
    """The whole address, with its query."""
    model: str = ""
    """The model that the address names (Gemini)."""
    parsed: Any = field(default=None, repr=False)
    counter: Counter = CHARACTERS

    @property
    def body(self) -> Any:
        """The parsed JSON body (parsed anew once the request is over: many bodies are large)."""
        return self.parsed if self.parsed is not None else self.with_model(json.loads(self.raw))

    def with_model(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with what other protocols have in it and Gemini in the address."""
        if self.cloud in ("bedrock", "vertex"):
            bare = {key: value for key, value in body.items() if key not in ("anthropic_version", "anthropic_beta")}
            return {"model": self.model, "stream": True, **bare}
        return {"model": self.model, "stream": True, **body} if self.protocol == "gemini" else body

    @property
    def items(self) -> list[Item]:
        """The conversation in normal form."""
        return WIRES[self.protocol].items(self.body)

    @property
    def prefix_items(self) -> list[str]:
        """Tools, system blocks and message blocks in the order of the prefix cache, cache marks left out."""
        return WIRES[self.protocol].prefix_items(self.body)

    def continues(self, before: Request) -> bool:
        """Say whether it begins with all that `before` had; what `before` ended with may have grown at its end."""
        *items, last = before.prefix_items
        own = self.prefix_items
        return len(own) > len(items) and own[: len(items)] == items and own[len(items)].startswith(last.rstrip('"}]'))

    @property
    def tokens(self) -> int:
        """The prompt's tokens, as this server counts them."""
        return self.counter.prompt(self.prefix_items)

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that came along."""
        tools = self.body.get("tools") or []
        if self.protocol == "gemini":
            return [function["name"] for tool in tools for function in tool.get("functionDeclarations", [])]
        return [tool.get("name") or tool.get("function", {}).get("name", "") for tool in tools]

    @property
    def is_compaction(self) -> bool:
        """Whether the provider is asked to compact the conversation."""
        body = self.body
        if self.protocol == "anthropic":
            return bool(body.get("compaction"))
        return self.path == ENDPOINT or (self.protocol == "responses" and is_triggered(body))

    @property
    def last_user(self) -> str:
        """The text of the newest user message."""
        return next((item.text for item in reversed(self.items) if item.kind == "user"), "")

    @property
    def turn(self) -> list[Item]:
        """The items after the newest user message."""
        items = self.items
        last = max((place for place, item in enumerate(items) if item.kind == "user"), default=-1)
        return items[last + 1 :]
