"""Views for the tests: histories as a session would hand them to a client."""

from __future__ import annotations

import msgspec

from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import ModelFacts, ModelRequest, ToolSchema
from tenuto.protocol.part import AssistantPart, ImagePart, TextPart, ThinkingPart, ToolCallPart

SCHEMA = msgspec.Raw(b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}')
TOOLS = (
    ToolSchema(name="read", description="Read a file.", parameters=SCHEMA),
    ToolSchema(name="grep", description="Search.", parameters=SCHEMA),
)
PNG = b"\x89PNG\r\n\x1a\n-not-really"
IMAGE = ImagePart(sha256="ab" * 32, media_type="image/png", size=len(PNG), name="shot.png")
PROVIDERS = ("anthropic", "openai", "openai-chat")


def load_blob(sha256: str) -> bytes:
    if sha256 != IMAGE.sha256:
        raise FileNotFoundError(sha256)
    return PNG


def facts(provider: str, **fields: object) -> ModelFacts:
    return ModelFacts(provider=provider, name="m", context_window=200_000, **fields)  # pyright: ignore[reportArgumentType]


def user(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def result(call_id: str, text: str = "done", **fields: object) -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, name="read", parts=(TextPart(text=text),), **fields)  # pyright: ignore[reportArgumentType]


def thinking(provider: str, text: str = "hm") -> ThinkingPart:
    """Thinking as each wire stores it."""
    block = {
        "anthropic": {"type": "thinking", "thinking": text, "signature": f"sig-{text}"},
        "openai": {"id": f"rs_{text}", "type": "reasoning", "summary": [], "encrypted_content": f"enc-{text}"},
        "openai-chat": {"reasoning_content": text},
    }[provider]
    return ThinkingPart(text=text, provider=provider, block=msgspec.Raw(msgspec.json.encode(block)))


def answer(provider: str, *parts: AssistantPart, prefix: str = "") -> AssistantMessage:
    return AssistantMessage(parts=parts, model=f"{provider}/m", prefix=prefix)


def request(provider: str, messages: list[Message] | tuple[Message, ...], **fields: object) -> ModelRequest:
    given: dict[str, object] = {"model": facts(provider), "tools": TOOLS, "cache_key": "session", **fields}
    return ModelRequest(messages=tuple(messages), **given)  # pyright: ignore[reportArgumentType]


def rich_view(provider: str) -> list[Message]:
    """One of everything: two system texts, images, parallel calls, developer texts, foreign thinking."""
    return [
        SystemMessage(text="You are careful."),
        SystemMessage(text="Summary of what came before."),
        UserMessage(parts=(TextPart(text="Look at this"), IMAGE)),
        DeveloperMessage(text="mode: ask", kind="mode"),
        answer(
            provider,
            thinking("anthropic"),
            thinking("openai"),
            TextPart(text="I read.", phase="commentary"),
            ToolCallPart(id="call_1", name="read", arguments='{"path":"a.py"}'),
            ToolCallPart(id="functions.read:1", name="bad name!", arguments="{}"),
        ),
        result("call_1", "text of a.py"),
        ToolResultMessage(
            call_id="functions.read:1", name="read", parts=(TextPart(text="a picture"), IMAGE), is_error=True
        ),
        DeveloperMessage(text="a file changed"),
        answer(provider, TextPart(text="Both read.", phase="final_answer")),
        user("  "),
        user("Thanks, go on"),
        DeveloperMessage(text="date: today"),
        DeveloperMessage(text="mode: auto"),
    ]
