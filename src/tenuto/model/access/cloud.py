"""Models in a cloud: the official SDK knows the address, the signature and the token; the bytes are read by ours.

`anthropic` and `openai` are imported with the first request, in a thread: that takes most of a second.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol, cast

from tenuto.model.endpoint import Endpoint
from tenuto.protocol.model import ModelError

EXTRA = "python -m pip install 'tenuto[cloud]'"
OWN_HEADERS = ("authorization", "x-api-key", "anthropic-version", "content-type", "accept")
"""Headers that the SDK makes itself."""
EVENT_STREAM = "application/vnd.amazon.eventstream"


class RawResponse(Protocol):
    """What of an SDK's response is used."""

    headers: Mapping[str, str]

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class CloudTransport:
    """One cloud (see `Transport`)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body, as server-sent events (see `Transport`)."""
        response = await self._send(url.removeprefix(self._endpoint.base_url), headers, body)
        chunks = self._chunks(response)
        try:
            is_framed = response.headers.get("content-type", "").startswith(EVENT_STREAM)
            async with aclosing(_unframed(chunks) if is_framed else chunks) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            await response.aclose()

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Raise `ModelError`: a cloud lists what it could have, not what this account can use."""
        del headers
        raise ModelError("not_found", f"{self._endpoint.provider} has no list of models", status=404, hint=url)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _send(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        client = await self._connected()
        extra = {name: value for name, value in headers.items() if name.lower() not in OWN_HEADERS}
        try:
            stream = await client.post(
                path, body=json.loads(body), options={"headers": extra}, cast_to=object, stream=True, **self._kind()
            )
        except ModelError:
            raise
        except Exception as error:  # what the SDK and the libraries under it raise
            raise self._judge(error) from error
        return cast("RawResponse", stream.response)

    def _kind(self) -> dict[str, Any]:
        if self._endpoint.cloud == "azure":
            from openai import AsyncStream as OpenAIStream

            return {"stream_cls": OpenAIStream[object]}
        from anthropic import AsyncStream

        return {"stream_cls": AsyncStream[object]}

    async def _chunks(self, response: RawResponse) -> AsyncGenerator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except Exception as error:  # of the HTTP library under the SDK
            raise ModelError("broken_stream", f"the connection broke: {error or type(error).__name__}") from error

    async def _connected(self) -> Any:
        """Return the SDK's client of the running loop. Raises `ModelError`: it, or a setting, is missing."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            try:
                self._client, self._loop = await asyncio.to_thread(make_client, self._endpoint), loop
            except ModelError:
                raise
            except Exception as error:  # what the SDK says of settings
                raise self._judge(error) from error
        return self._client

    def _judge(self, error: Exception) -> ModelError:
        """Return one of our errors for one of the SDK, or of the libraries that have the credentials."""
        from tenuto.model.errors import classify, parse_retry_after

        provider = self._endpoint.provider
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None)
        if response is not None and isinstance(status, int):
            retry_after = parse_retry_after(response.headers)
            return classify(provider, status, response.text, retry_after=retry_after)
        reason = str(error) or type(error).__name__
        if isinstance(error, ImportError) or "extra" in reason:
            return ModelError("invalid", f"{provider} needs libraries that are not installed", hint=EXTRA)
        if type(error).__name__ in ("APIConnectionError", "APITimeoutError"):
            cause = error.__cause__ or error
            return ModelError("unreachable", f"cannot reach {self._endpoint.base_url}: {cause or reason}")
        return ModelError("auth", f"{provider}: {reason}", hint=CREDENTIALS[self._endpoint.cloud])


CREDENTIALS = {
    "bedrock": "AWS_PROFILE or AWS_ACCESS_KEY_ID say who you are; aws sts get-caller-identity tries it",
    "vertex": "gcloud auth application-default login says who you are",
    "azure": "set AZURE_OPENAI_API_KEY, or run tenuto login azure",
}


def make_client(endpoint: Endpoint) -> Any:
    """Return the SDK's client of an endpoint. Raises what the SDK does where something is missing."""
    import httpx2

    timeout = httpx2.Timeout(endpoint.stream_timeout, connect=endpoint.connect_timeout)
    common: dict[str, Any] = {"max_retries": 0, "timeout": timeout}
    if endpoint.has_own_address:
        common["base_url"] = endpoint.base_url
    match endpoint.cloud:
        case "bedrock":
            import boto3  # noqa: F401  # pyright: ignore - the SDK says less well that it is missing
            from anthropic.lib.bedrock import AsyncAnthropicBedrock

            return AsyncAnthropicBedrock(
                aws_region=endpoint.region or None, aws_profile=endpoint.profile or None, **common
            )
        case "vertex":
            import google.auth  # noqa: F401  # pyright: ignore - the same
            from anthropic.lib.vertex import AsyncAnthropicVertex

            named = {"project_id": endpoint.project} if endpoint.project else {}
            return AsyncAnthropicVertex(region=endpoint.region, **named, **common)
        case _:
            from openai import AsyncAzureOpenAI

            common.pop("base_url", None)
            deployment = {"azure_deployment": endpoint.deployment} if endpoint.deployment else {}
            return AsyncAzureOpenAI(
                azure_endpoint=endpoint.base_url,
                api_key=endpoint.key or None,
                api_version=endpoint.api_version,
                **deployment,
                **common,
            )


async def _unframed(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield Amazon's event stream as server-sent events. Raises `ModelError` for an exception, and a wrong checksum."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer: Any = EventStreamBuffer()
    async with aclosing(chunks):
        async for chunk in chunks:
            buffer.add_data(chunk)
            try:
                events: list[dict[str, Any]] = [event.to_response_dict() for event in buffer]
            except ParserError as error:
                raise ModelError("broken_stream", f"a frame of the stream is damaged: {error}") from error
            for event in events:
                yield _as_event(event)


def _as_event(event: dict[str, Any]) -> bytes:
    """Return one frame as a server-sent event; an exception as an error event of the protocol."""
    import base64

    headers, body = event["headers"], event["body"]
    if event["status_code"] != 200 or headers.get(":message-type") in ("exception", "error"):
        name = str(headers.get(":exception-type") or headers.get(":error-code") or "error")
        said = json.loads(body or b"{}").get("message", "") or str(headers.get(":error-message", ""))
        error = {"type": "error", "error": {"type": ERROR_TYPES.get(name, name), "message": f"{name}: {said}"}}
        return b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n"
    data = base64.b64decode(json.loads(body).get("bytes", ""))
    kind = str(json.loads(data).get("type", "")) if data else ""
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


ERROR_TYPES = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "internalServerException": "api_error",
    "modelStreamErrorException": "api_error",
    "validationException": "invalid_request_error",
    "modelTimeoutException": "timeout_error",
}
"""The words of the protocol for Amazon's exceptions."""
