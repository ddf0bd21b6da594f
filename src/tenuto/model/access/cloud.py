"""Models in a cloud: the official SDK knows the address, the signature and the token; the bytes are read by ours.

`anthropic` and `openai` are imported with the first request, in a thread: that takes most of a second.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Protocol, cast

import msgspec

from tenuto.model.access.supply import KeySupply
from tenuto.model.endpoint import Endpoint
from tenuto.model.errors import classify, parse_retry_after, with_hint
from tenuto.protocol.model import ModelError

EXTRA = "python -m pip install 'tenuto[cloud]'"
OWN_HEADERS = ("authorization", "x-api-key", "anthropic-version", "content-type", "accept")
"""Headers that the SDK makes itself."""
UNAUTHORIZED = 401
EVENT_STREAM = "application/vnd.amazon.eventstream"
AWS_KEYS_OVER = re.compile(r"security token|token .*expired|expired.* token|signature", re.IGNORECASE)
"""What Amazon says of keys that are no good any more; that an account may not use a model it says in other words."""
ENTRA_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
"""What Microsoft Entra gives in the place of a key: a signed token."""
AwsKeys = tuple[str, str, str | None]
"""Key, secret, session token."""


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
    """One cloud (see `Transport`). `supply` has the key of Azure where that is not known yet."""

    def __init__(self, endpoint: Endpoint, supply: KeySupply | None = None) -> None:
        self._endpoint = endpoint
        self._supply = supply
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._older: list[Any] = []
        """Clients with credentials of before; answers may still come over them."""
        self._key = endpoint.key
        self._aws_keys: AwsKeys | None = None
        """Those that the user's AWS configuration had after the SDK's were refused."""

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the bytes of the response body, as server-sent events (see `Transport`)."""
        path = url.removeprefix(self._endpoint.base_url)
        try:
            response = await self._send(path, headers, body)
        except ModelError as error:
            if error.kind != "auth" or not await self._has_other_credentials(error):
                raise
            response = await self._send(path, headers, body)
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
        self._let_go()
        clients, self._older = self._older, []
        for client in clients:
            await client.close()

    def _let_go(self) -> None:
        """Make a new client for the next request."""
        if self._client is not None:
            self._older.append(self._client)
            self._client = None

    async def _send(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        client = await self._connected()
        extra = {name: value for name, value in headers.items() if name.lower() not in OWN_HEADERS}
        fields = json.loads(body)
        if self._endpoint.deployment and self._endpoint.kind == "openai":  # its name stands in the address elsewhere
            fields["model"] = self._endpoint.deployment
        try:
            stream = await client.post(
                path, body=fields, options={"headers": extra}, cast_to=object, stream=True, **self._kind()
            )
        except ModelError:
            raise
        except Exception as error:  # what the SDK and the libraries under it raise
            raise self._judge(error) from error
        return cast("RawResponse", stream.response)

    async def _has_other_credentials(self, error: ModelError) -> bool:
        """Whether there are other credentials than those that were refused. The next client is made with them.

        The SDKs keep what they have found for as long as the process lives, and renew only what tells when it expires.
        """
        self._let_go()
        match self._endpoint.cloud:
            case "bedrock":
                if not AWS_KEYS_OVER.search(error.text):
                    return False
                before, self._aws_keys = self._aws_keys, await asyncio.to_thread(find_aws_keys, self._endpoint)
                return self._aws_keys is not None and self._aws_keys != before
            case "vertex":
                return error.status == UNAUTHORIZED
            case _:
                return self._supply is not None and await self._supply.renew(self._key) != self._key

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
            raise self._broken(error) from error

    def _broken(self, error: BaseException) -> ModelError:
        if type(error).__name__ == "ReadTimeout":
            seconds = self._endpoint.stream_timeout
            return ModelError("broken_stream", f"no data from {self._endpoint.host} for {seconds:g} seconds")
        return ModelError("broken_stream", f"the connection broke: {str(error) or type(error).__name__}")

    async def _connected(self) -> Any:
        """Return the SDK's client of the running loop, with the key as it is now.

        Raises `ModelError`: the SDK, a key or a setting is missing.
        """
        loop = asyncio.get_running_loop()
        key = await self._supply.get() if self._supply is not None else self._key
        if self._loop is not loop:
            self._client, self._older = None, []  # they ended with their loop
        if self._client is None or key != self._key:
            self._let_go()
            endpoint = msgspec.structs.replace(self._endpoint, key=key)
            try:
                self._client = await asyncio.to_thread(make_client, endpoint, self._aws_keys)
            except ModelError:
                raise
            except Exception as error:  # what the SDK says of settings
                raise self._judge(error) from error
            self._loop, self._key = loop, key
        return self._client

    def _judge(self, error: Exception) -> ModelError:
        """Return one of our errors for one of the SDK, or of the libraries that have the credentials."""
        provider = self._endpoint.provider
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None)
        if response is not None and isinstance(status, int):
            retry_after = parse_retry_after(response.headers)
            judged = classify(provider, status, response.text, retry_after=retry_after)
            return judged if judged.kind != "auth" else self._with_hint(judged)
        reason = str(error) or type(error).__name__
        if isinstance(error, ImportError) or "extra" in reason:
            return ModelError("invalid", f"{provider} needs libraries that are not installed", hint=EXTRA)
        if type(error).__name__ in ("APIConnectionError", "APITimeoutError"):
            cause = error.__cause__ or error
            if type(cause).__name__ == "ReadTimeout":
                return self._broken(cause)
            return ModelError("unreachable", f"cannot reach {self._address()}: {cause or reason}")
        if type(error).__name__ == "AnthropicError":  # what the SDK knows that a cloud does not have
            return ModelError("invalid", f"{provider}: {reason}")
        return self._with_hint(ModelError("auth", f"{provider}: {reason}"))

    def _address(self) -> str:
        return str(self._client.base_url) if self._client is not None else self._endpoint.base_url

    def _with_hint(self, error: ModelError) -> ModelError:
        """Return an error of the credentials with what gives them."""
        if self._endpoint.cloud == "azure":
            return with_hint(error, self._endpoint)
        return ModelError("auth", error.text, status=error.status, hint=CREDENTIALS[self._endpoint.cloud])


CREDENTIALS = {
    "bedrock": "AWS_PROFILE or AWS_ACCESS_KEY_ID say who you are; aws sts get-caller-identity tries it",
    "vertex": "gcloud auth application-default login says who you are",
}
"""What gives a cloud its credentials, where these are not ours."""


def make_client(endpoint: Endpoint, aws_keys: AwsKeys | None = None) -> Any:
    """Return the SDK's client of an endpoint; without `aws_keys` it finds those of AWS itself.

    Raises what the SDK does where something is missing.
    """
    import httpx2

    timeout = httpx2.Timeout(endpoint.stream_timeout, connect=endpoint.connect_timeout)
    common: dict[str, Any] = {"max_retries": 0, "timeout": timeout}
    if endpoint.has_own_address:
        common["base_url"] = endpoint.base_url
    match endpoint.cloud:
        case "bedrock":
            import boto3  # noqa: F401  # pyright: ignore - the SDK says less well that it is missing
            from anthropic.lib.bedrock import AsyncAnthropicBedrock

            if aws_keys is not None:
                names = ("aws_access_key", "aws_secret_key", "aws_session_token")
                common.update(zip(names, aws_keys, strict=True))
            elif endpoint.profile:
                common["aws_profile"] = endpoint.profile
            return AsyncAnthropicBedrock(aws_region=endpoint.region or None, **common)
        case "vertex":
            import google.auth  # noqa: F401  # pyright: ignore - the same
            from anthropic.lib.vertex import AsyncAnthropicVertex

            project = endpoint.project or find_project(endpoint)
            return AsyncAnthropicVertex(region=endpoint.region, project_id=project, **common)
        case _:
            from openai import AsyncAzureOpenAI

            common.pop("base_url", None)
            if endpoint.deployment:
                common["azure_deployment"] = endpoint.deployment
            common["azure_ad_token" if is_entra_token(endpoint) else "api_key"] = endpoint.key or None
            return AsyncAzureOpenAI(azure_endpoint=endpoint.base_url, api_version=endpoint.api_version, **common)


def find_project(endpoint: Endpoint) -> str:
    """Return the project of Google's credentials, which the SDK would look for too late. Raises `ModelError`."""
    import google.auth

    _, project = cast("tuple[object, str | None]", cast("Any", google.auth).default())
    if not project:
        name = endpoint.provider
        hint = f"set ANTHROPIC_VERTEX_PROJECT_ID, or project under [providers.{name}]"
        raise ModelError("invalid", f"neither the settings nor your credentials say the project of {name}", hint=hint)
    return project


def is_entra_token(endpoint: Endpoint) -> bool:
    """Say whether Azure's key is a token of Microsoft Entra, which goes into another header."""
    return endpoint.key_name == "AZURE_OPENAI_AD_TOKEN" or ENTRA_TOKEN.fullmatch(endpoint.key) is not None


def find_aws_keys(endpoint: Endpoint) -> AwsKeys | None:
    """Return the keys that the user's AWS configuration has now; it may ask servers and programs."""
    import boto3

    session: Any = boto3.Session(profile_name=endpoint.profile or None)
    found = session.get_credentials()
    if found is None:
        return None
    frozen = found.get_frozen_credentials()
    return frozen.access_key, frozen.secret_key, frozen.token


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
