"""The official SDKs over their own mock transports: what they ask for, and what they read in an answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.server.cloud_keys import ACCESS_KEY, AZURE_KEY, AZURE_VERSION, PROJECT, REGION, SECRET_KEY, TOKEN
from tests.server.clouds import frame

WAYS = ("bedrock", "vertex", "azure chat", "azure responses", "gemini")


@dataclass(slots=True)
class Heard:
    """What an SDK read in an answer, in words that ours can be put into."""

    parts: list[Any] = field(default_factory=list)
    stop: str = ""
    sent: int = 0
    output: int = 0
    cache_read: int = 0
    thoughts: int = 0


class Sdk:
    """The SDK of one way to a model. `status`, `headers` and `body` are what every request is answered with."""

    def __init__(self, way: str, base_url: str) -> None:
        self.way = way
        self.base_url = base_url
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b""
        self.seen: list[Any] = []

    def answer(self, events: Sequence[bytes], status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Answer with these events, framed as the cloud frames them, or with a body where it is an error."""
        is_framed = self.way == "bedrock" and status == 200
        self.status, self.body = status, b"".join(_framed(event) if is_framed else event for event in events)
        kind = "application/vnd.amazon.eventstream" if is_framed else "text/event-stream"
        self.headers = {"content-type": kind if status == 200 else "application/json", **(headers or {})}

    async def call(self, body: dict[str, Any], beta: str = "") -> Heard:
        """Make the call whose body is `body` as a program would, by the SDK's own types."""
        match self.way:
            case "bedrock" | "vertex":
                return await self._messages(body, {"anthropic-beta": beta} if beta else {})
            case "azure chat":
                return await self._chat(body)
            case "azure responses":
                return await self._responses(body)
            case _:
                return await self._gemini(body)

    def _http(self) -> Any:
        import httpx2

        def handle(request: httpx2.Request) -> httpx2.Response:
            self.seen.append(request)
            return httpx2.Response(self.status, headers=self.headers, content=self.body)

        return httpx2.AsyncClient(transport=httpx2.MockTransport(handle))

    async def _messages(self, body: dict[str, Any], headers: dict[str, str]) -> Heard:
        import anthropic

        common: dict[str, Any] = {"base_url": self.base_url, "max_retries": 0, "http_client": self._http()}
        if self.way == "bedrock":
            keys = {"aws_access_key": ACCESS_KEY, "aws_secret_key": SECRET_KEY, "aws_region": REGION}
            client: Any = anthropic.AsyncAnthropicBedrock(**keys, **common)
        else:
            own = {"region": "europe-west1", "project_id": PROJECT, "access_token": TOKEN}
            client = anthropic.AsyncAnthropicVertex(**own, **common)
        given = typed(client.messages.stream, without(body, "stream"))
        async with client.messages.stream(**given, extra_headers=headers) as stream:
            message = await stream.get_final_message()
        heard = Heard(stop=message.stop_reason or "")
        for block in message.content:
            match block.type:
                case "text":
                    heard.parts.append(("text", block.text))
                case "tool_use":
                    heard.parts.append(("call", block.id, block.name, block.input))
                case _:
                    heard.parts.append(("thinking", getattr(block, "thinking", "")))
        usage = message.usage
        heard.cache_read = usage.cache_read_input_tokens or 0
        heard.sent = usage.input_tokens + heard.cache_read + (usage.cache_creation_input_tokens or 0)
        heard.output = usage.output_tokens
        return heard

    def _azure(self) -> Any:
        import openai

        return openai.AsyncAzureOpenAI(
            azure_endpoint=self.base_url,
            api_key=AZURE_KEY,
            api_version=AZURE_VERSION,
            max_retries=0,
            http_client=self._http(),
        )

    async def _chat(self, body: dict[str, Any]) -> Heard:
        from openai.lib.streaming.chat import ChatCompletionStreamState

        client = self._azure()
        state: Any = ChatCompletionStreamState()
        async for chunk in await client.chat.completions.create(**typed(client.chat.completions.create, body)):
            state.handle_chunk(chunk)
        found = state.current_completion_snapshot
        choice = found.choices[0]
        heard = Heard(stop=choice.finish_reason or "")
        heard.parts = [("text", choice.message.content)] if choice.message.content else []
        for call in choice.message.tool_calls or []:
            heard.parts.append(("call", call.id, call.function.name, json.loads(call.function.arguments)))
        if found.usage is not None:
            heard.sent, heard.output = found.usage.prompt_tokens, found.usage.completion_tokens
            details = found.usage.prompt_tokens_details
            heard.cache_read = (details.cached_tokens or 0) if details is not None else 0
        return heard

    async def _responses(self, body: dict[str, Any]) -> Heard:
        client = self._azure()
        final: Any = None
        async for event in await client.responses.create(**typed(client.responses.create, body)):
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                final = event.response
        if final is None:
            raise EOFError("the stream had no last event")
        heard = Heard(stop=final.incomplete_details.reason if final.incomplete_details else final.status)
        for item in final.output:
            match item.type:
                case "message":
                    heard.parts.append(("text", "".join(part.text for part in item.content)))
                case "function_call":
                    heard.parts.append(("call", item.call_id, item.name, json.loads(item.arguments)))
                case "custom_tool_call":
                    heard.parts.append(("call", item.call_id, item.name, {"input": item.input}))
                case _:
                    heard.parts.append(("thinking", "\n\n".join(part.text for part in item.summary)))
        usage = final.usage
        heard.sent, heard.output = usage.input_tokens, usage.output_tokens
        heard.cache_read = usage.input_tokens_details.cached_tokens
        heard.thoughts = usage.output_tokens_details.reasoning_tokens
        return heard

    async def _gemini(self, body: dict[str, Any]) -> Heard:
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=self.base_url, api_version="v1beta", httpx_async_client=self._http())
        client = genai.Client(api_key="test", http_options=options)
        config = {key: body[key] for key in ("systemInstruction", "tools") if key in body}
        heard = Heard()
        async for chunk in await client.aio.models.generate_content_stream(
            model=body["model"],
            contents=[types.Content.model_validate(content) for content in body["contents"]],
            config=types.GenerateContentConfig.model_validate({**config, **body.get("generationConfig", {})}),
        ):
            _take_chunk(heard, chunk)
        return heard


def _framed(event: bytes) -> bytes:
    return frame(event) if event.startswith(b"event:") else event


def _take_chunk(heard: Heard, chunk: Any) -> None:
    usage = chunk.usage_metadata
    if usage is not None:
        heard.thoughts, heard.cache_read = usage.thoughts_token_count or 0, usage.cached_content_token_count or 0
        heard.sent = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        heard.output = (usage.candidates_token_count or 0) + heard.thoughts
    if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
        heard.stop = chunk.prompt_feedback.block_reason.value
    for candidate in chunk.candidates or []:
        heard.stop = candidate.finish_reason.value if candidate.finish_reason is not None else heard.stop
        for part in (candidate.content.parts if candidate.content is not None else None) or []:
            if part.function_call is not None:
                heard.parts.append(("call", part.function_call.id, part.function_call.name, part.function_call.args))
            elif part.text:
                kind = "thinking" if part.thought else "text"
                if heard.parts and heard.parts[-1][0] == kind:
                    heard.parts[-1] = (kind, heard.parts[-1][1] + part.text)
                else:
                    heard.parts.append((kind, part.text))


def typed(call: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a body as arguments of an SDK's method; what the method has no name for goes beside them."""
    names = inspect.signature(call).parameters
    extra = {name: value for name, value in body.items() if name not in names}
    return {**{name: value for name, value in body.items() if name in names}, "extra_body": extra or None}


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a body without some fields."""
    return {name: value for name, value in body.items() if name not in names}
