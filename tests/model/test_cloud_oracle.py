"""The official SDKs ask for the same as we do, and read the same in the same bytes: each cloud, and Gemini (K 3)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenuto.config.settings import ProviderSettings
from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ServerContext
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tests.model.clouds import Talk
from tests.model.sdks import WAYS, Heard, Sdk
from tests.model.streams import ANTHROPIC, AZURE_CHAT, CHAT, GEMINI, RESPONSES, data, named
from tests.model.views import IMAGE, load_blob
from tests.server import Call, HttpError, RawStream, Reply, ScriptedServer
from tests.server.clouds import frame_of

PROVIDERS = {"azure chat": "azure", "azure responses": "azure"}
OWN_HEADERS = re.compile(r"x-stainless-|content-length$|connection$|x-amz-date$|x-goog-api-client$|user-agent$|accept")
"""How an SDK counts itself, and what is of the connection; what Amazon signs with the time is looked at apart."""


ASKED: dict[str, Any] = {
    "effort": "high",
    "max_output_tokens": 9_000,
    "server": ServerContext(clear_over=50_000, clear_at_least=5_000, compact_over=150_000),
}


def talk_with(way: str, values: dict[str, str], home: Path) -> Talk:
    """A conversation over one of the ways, with images."""
    more: dict[str, ProviderSettings] = {}
    if way == "azure responses":
        more["azure"] = ProviderSettings(kind="openai", base_url=values["AZURE_OPENAI_ENDPOINT"])
    talk = Talk(values, home, PROVIDERS.get(way, way), **more)
    talk.models.load_blob = load_blob
    return talk


def camel(value: Any) -> Any:
    """Return JSON with Google's names in one of their two spellings, and an enum's word in capitals."""
    if isinstance(value, dict):
        named = {re.sub(r"_(\w)", lambda found: found[1].upper(), name): camel(one) for name, one in value.items()}
        return named | ({"thinkingLevel": named["thinkingLevel"].upper()} if "thinkingLevel" in named else {})
    return [camel(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("way", WAYS)
async def test_the_sdk_asks_for_the_same(tmp_path: Path, environ, way: str):
    steps = [
        Reply("Look.", thinking="hm", tool_calls=[Call("read", {"path": "ä"}), Call("grep", {"path": "b"})]),
        Reply("Done — ✓.", thinking="so"),
        Reply("Again."),
    ]
    async with ScriptedServer(steps) as server:
        talk = talk_with(way, environ(server, tmp_path) | server.environ(), tmp_path)
        for _ in steps:
            await talk.ask(**ASKED)
            talk.view[-1:] = [*talk.view[-1:], UserMessage(parts=(TextPart(text="see"), IMAGE))]
        await talk.models.close()
        assert server.refusals == []
        sdk = Sdk(way, server.base_url)
        for request in server.requests:
            sdk.answer([b"{}"], 404)
            with pytest.raises(Exception, match="404"):
                await sdk.call(request.body, request.headers.get("anthropic-beta", ""))
            theirs = sdk.seen[-1]
            assert (theirs.method, theirs.url.raw_path.decode()) == (request.method, request.target)
            wanted, sent = msgspec.json.decode(theirs.content), msgspec.json.decode(request.raw)
            assert (camel(sent) if way == "gemini" else sent) == (camel(wanted) if way == "gemini" else wanted)
            own = {name: value for name, value in request.headers.items() if not OWN_HEADERS.match(name)}
            other = {name: value for name, value in theirs.headers.items() if not OWN_HEADERS.match(name)}
            if way == "bedrock":
                own["authorization"], other["authorization"] = (
                    re.sub(r"\d{8}/|Signature=\w+|x-stainless-[\w-]+;?", "", one["authorization"])
                    for one in (own, other)
                )
            assert own == other


STREAMS = {
    "bedrock": ANTHROPIC,
    "vertex": ANTHROPIC,
    "azure chat": CHAT | AZURE_CHAT,
    "azure responses": RESPONSES,
    "gemini": GEMINI,
}
STOPS = {
    "max_tokens": {"max_tokens", "length", "max_output_tokens", "MAX_TOKENS"},
    "refusal": {"refusal", "content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT"},
    "tool_use": {"tool_use", "tool_calls", "completed", "STOP"},
    "end_turn": {"end_turn", "stop", "completed", "STOP"},
    "window_exceeded": {"model_context_window_exceeded"},
}


def heard_by_us(message: AssistantMessage) -> Heard:
    """What we read in an answer, in an SDK's words."""
    heard = Heard(stop=message.stop_reason)
    for part in message.parts:
        match part:
            case TextPart(text=text):
                heard.parts.append(("text", text))
            case ThinkingPart(text=text) if text or part.provider != "gemini":  # there a signature may stand alone
                heard.parts.append(("thinking", text))
            case ToolCallPart():
                heard.parts.append(("call", part.id, part.name, msgspec.json.decode(part.arguments)))
            case _:
                pass
    if message.usage is not None:
        usage = message.usage
        heard.sent, heard.output, heard.cache_read = usage.sent, usage.output, usage.cache_read
        heard.thoughts = usage.reasoning
    return heard


async def both(way: str, events: list[bytes], environ, home: Path) -> tuple[Heard | Exception, Heard | ModelError]:
    """What the SDK and we read in the same bytes, or raise."""
    async with ScriptedServer([RawStream(events)]) as server:
        talk = talk_with(way, environ(server, home) | server.environ(), home)
        sdk = Sdk(way, server.base_url)
        sdk.answer(events)
        try:
            *_, end = await talk.parts()
            assert isinstance(end, Finished)
            ours: Heard | ModelError = heard_by_us(end.message)
        except ModelError as error:
            ours = error
        await talk.models.close()
        assert server.refusals == []
        try:
            theirs: Heard | Exception = await sdk.call(server.requests[0].body)
        except Exception as error:
            theirs = error
        return theirs, ours


@pytest.mark.parametrize(("way", "case"), [(way, case) for way in WAYS for case in STREAMS[way]])
async def test_the_sdk_reads_the_same(tmp_path: Path, environ, way: str, case: str):
    theirs, ours = await both(way, STREAMS[way][case], environ, tmp_path)
    assert isinstance(ours, Heard), ours
    assert isinstance(theirs, Heard), theirs
    assert ours.parts == theirs.parts
    assert theirs.stop in STOPS[ours.stop]
    assert (ours.sent, ours.output, ours.cache_read) == (theirs.sent, theirs.output, theirs.cache_read)
    if theirs.thoughts:
        assert ours.thoughts == theirs.thoughts


@pytest.mark.parametrize("way", WAYS)
async def test_a_stream_that_is_cut_or_damaged_is_no_answer(tmp_path: Path, environ, way: str):
    events = next(iter(STREAMS[way].values()))
    for number in range(1, 3):
        _, cut = await both(way, events[:number], environ, tmp_path)
        assert isinstance(cut, ModelError), cut
        assert cut.kind == "broken_stream"
    damaged = [events[0], b'event: x\ndata: {"type": "x", \n\n', *events[1:]]
    if way != "bedrock":  # there a frame has its checksum: see `test_a_damaged_frame_breaks_the_stream`
        theirs, ours = await both(way, damaged, environ, tmp_path)
        assert isinstance(ours, ModelError) and isinstance(theirs, Exception), (theirs, ours)
        assert ours.kind == "broken_stream"


def amazon(name: str, message: str) -> bytes:
    headers = {":message-type": "exception", ":exception-type": name, ":content-type": "application/json"}
    return frame_of(headers, msgspec.json.encode({"message": message}))


LATE_ERRORS: dict[str, list[tuple[bytes, str]]] = {
    "bedrock": [
        (amazon("throttlingException", "Too many requests, please wait before trying again."), "rate_limit"),
        (amazon("serviceUnavailableException", "The service is unavailable."), "overloaded"),
        (amazon("internalServerException", "An internal server error occurred."), "server"),
        (amazon("modelStreamErrorException", "An error occurred while streaming the response."), "server"),
        (amazon("modelTimeoutException", "The model took too long."), "server"),
        (amazon("validationException", "Input is too long for requested model."), "overflow"),
        (frame_of({":message-type": "error", ":error-code": "500", ":error-message": "broken"}, b""), "server"),
    ],
    "vertex": [(named("error", error={"type": "overloaded_error", "message": "Overloaded"}), "overloaded")],
    "azure chat": [(data({"error": {"code": "429", "message": "Rate limit is exceeded."}}), "rate_limit")],
    "azure responses": [
        (
            named("error", sequence_number=3, code="server_error", message="The server had an error.", param=None),
            "server",
        )
    ],
    "gemini": [
        (data({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}), "overloaded")
    ],
}


@pytest.mark.parametrize(("way", "place"), [(way, place) for way in WAYS for place in range(len(LATE_ERRORS[way]))])
async def test_an_error_behind_the_beginning_of_an_answer(tmp_path: Path, environ, way: str, place: int):
    event, kind = LATE_ERRORS[way][place]
    theirs, ours = await both(way, [*next(iter(STREAMS[way].values()))[:2], event], environ, tmp_path)
    assert isinstance(ours, ModelError), ours
    assert ours.kind == kind
    assert isinstance(theirs, Exception), theirs


def google(code: int, status: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, **more}}


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def openai(code: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


FILTERED = openai(
    "content_filter",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry.",
    param="prompt",
    type=None,
    innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
)
AZURE_ERRORS = [
    (401, openai("401", "Access denied due to invalid subscription key or wrong API endpoint."), "auth"),
    (403, openai("AuthenticationTypeDisabled", "Key based authentication is disabled for this resource."), "auth"),
    (404, openai("DeploymentNotFound", "The API deployment for this resource does not exist."), "not_found"),
    (
        429,
        openai(
            "429",
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2025-04-01-preview have "
            "exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 7 seconds.",
        ),
        "rate_limit",
    ),
    (503, openai("503", "The service is temporarily unable to process your request. Please try again."), "overloaded"),
    (400, FILTERED, "refused"),
]
ERRORS: dict[str, list[tuple[int, dict[str, Any], str]]] = {
    "bedrock": [
        (403, {"message": "The security token included in the request is invalid."}, "auth"),
        (403, {"message": "You don't have access to the model with the specified model ID."}, "auth"),
        (404, {"message": "Could not resolve the foundation model from the provided model identifier."}, "not_found"),
        (400, {"message": "The provided model identifier is invalid."}, "not_found"),
        (429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit"),
        (429, {"message": "Too many requests, please wait before trying again."}, "rate_limit"),
        (503, {"message": "Bedrock is unable to process your request."}, "overloaded"),
        (500, {"message": "The system encountered an unexpected error during processing. Try again."}, "server"),
        (400, {"message": "Input is too long for requested model."}, "overflow"),
    ],
    "vertex": [
        (401, google(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."), "auth"),
        (
            403,
            google(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource."),
            "auth",
        ),
        (
            404,
            google(
                404,
                "NOT_FOUND",
                "Publisher Model `projects/p/.../models/x` was not found or your project does not have access to it.",
            ),
            "not_found",
        ),
        (
            429,
            google(
                429,
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for aiplatform.googleapis.com/online_prediction_input_tokens_per_minute_per_base_model "
                "with base model: anthropic-claude-opus-5-5. Please submit a quota increase request.",
            ),
            "rate_limit",
        ),
        (429, anthropic("rate_limit_error", "This request would exceed your rate limit."), "rate_limit"),
        (529, anthropic("overloaded_error", "Overloaded"), "overloaded"),
        (503, google(503, "UNAVAILABLE", "The service is currently unavailable."), "overloaded"),
        (400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "overflow"),
    ],
    "azure chat": [
        *AZURE_ERRORS,
        (
            400,
            openai(
                "context_length_exceeded",
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 "
                "tokens. Please reduce the length of the messages.",
            ),
            "overflow",
        ),
    ],
    "azure responses": AZURE_ERRORS,
    "gemini": [
        (
            400,
            google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "auth",
        ),
        (403, google(403, "PERMISSION_DENIED", "Your API key was reported as leaked."), "auth"),
        (404, google(404, "NOT_FOUND", "models/x is not found for API version v1beta"), "not_found"),
        (
            429,
            google(
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details. Please retry in 7.5s.",
                details=[
                    {
                        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                        "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}],
                    },
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"},
                ],
            ),
            "rate_limit",
        ),
        (503, google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), "overloaded"),
        (500, google(500, "INTERNAL", "An internal error has occurred."), "server"),
    ],
}
CLASSES = {
    "auth": {"AuthenticationError", "PermissionDeniedError", "ClientError"},
    "not_found": {"NotFoundError", "BadRequestError", "ClientError"},
    "rate_limit": {"RateLimitError", "ClientError"},
    "overloaded": {"OverloadedError", "ServiceUnavailableError", "InternalServerError", "ServerError"},
    "server": {"InternalServerError", "ServerError"},
    "overflow": {"BadRequestError"},
    "refused": {"BadRequestError"},
}


@pytest.mark.parametrize(("way", "place"), [(way, place) for way in WAYS for place in range(len(ERRORS[way]))], ids=str)
async def test_the_sdk_raises_the_same(tmp_path: Path, environ, way: str, place: int):
    status, body, kind = ERRORS[way][place]
    raw = msgspec.json.encode(body)
    async with ScriptedServer([HttpError(status, raw, {"retry-after": "7"})] * 2) as server:
        talk = talk_with(way, environ(server, tmp_path) | server.environ(), tmp_path)
        with pytest.raises(ModelError) as caught:
            await talk.parts()
        await talk.models.close()
        sdk = Sdk(way, server.base_url)
        sdk.answer([raw], status, {"retry-after": "7"})
        with pytest.raises(Exception, match=str(status)) as raised:
            await sdk.call(server.requests[0].body)
        ours = caught.value
        assert ours.kind == kind
        assert type(raised.value).__name__ in CLASSES[kind]
        assert ours.status == status
        assert ours.text.rstrip(".") in str(raised.value)
        assert ours.retry_after == (7 if kind in ("rate_limit", "overloaded", "server") else None)
