"""The scripted server: in the test's own loop (`ScriptedServer`) or in a thread (`ServerThread`)."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import threading
import time
import traceback
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any, Self
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from tenuto.evaluation.scripted import Counter
from tests.server.anthropic_rules import check as check_anthropic
from tests.server.clouds import check_cloud, error_object, find_cloud, give_aws_keys, give_token, model_in
from tests.server.connection import Connection, Incoming
from tests.server.gemini_rules import check as check_gemini
from tests.server.item import Refusal
from tests.server.openai_compaction import ENDPOINT, check_endpoint
from tests.server.openai_rules import check_chat, check_responses
from tests.server.openrouter import OPENROUTER, OpenRouter
from tests.server.options import Options
from tests.server.playback import Playback, encode, respond
from tests.server.reply import AnyReply, Script
from tests.server.request import WIRES, Protocol, Request

NO_SANDBOX = "TENUTO_SANDBOX__ENABLED"
"""Set by `tests/conftest.py` where this machine has no sandbox: mode auto would ask there."""
CHECKS = {"anthropic": check_anthropic, "responses": check_responses, "chat": check_chat, "gemini": check_gemini}
ROUTES: dict[str, tuple[Protocol, bool]] = {
    "/messages": ("anthropic", False),
    "/messages/count_tokens": ("anthropic", True),
    "/responses": ("responses", False),
    "/responses/compact": ("responses", False),
    "/responses/input_tokens": ("responses", True),
    "/chat/completions": ("chat", False),
}


BYTES_A_TOKEN = 5
"""Of a body, about: names and punctuation of JSON are in it."""
GEMINI = re.compile(r"/v1beta/models(?:/(?P<model>[^:/]+):(?P<method>\w+))?")


class ScriptedServer:
    """Serve a script on a loopback port. `async with ScriptedServer(script, window=8000) as server: ...`."""

    def __init__(self, script: Script, *, port: int = 0, keep_bodies: bool = True, **options: Any) -> None:
        self.script = script
        self.options = Options(**options)
        self.port = port
        self.keep_bodies = keep_bodies
        self.all_requests: list[Request] = []
        self.faults: list[str] = []
        """Tracebacks of the server itself or of the script's callable."""
        self.connections_made = 0
        self.control: dict[str, Any] = {}
        self.openrouter = OpenRouter(self.options.api_key or "test")
        self._used = 0
        self._calls = 0
        self._known: dict[Protocol, list[str]] = {}
        self._server: asyncio.Server | None = None
        self._connections: WeakSet[Connection] = WeakSet()

    # --- what tests look at ---

    @property
    def base_url(self) -> str:
        """For ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"{self.base_url}/v1"

    def environ(self) -> dict[str, str]:
        """The variables that point a client here, and what the machine has of a sandbox."""
        key = self.options.api_key or "test"
        return {
            "ANTHROPIC_BASE_URL": self.base_url,
            "ANTHROPIC_API_KEY": key,
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": key,
            "GOOGLE_GEMINI_BASE_URL": f"{self.base_url}/v1beta",
            "GEMINI_API_KEY": key,
            "NO_PROXY": "127.0.0.1,localhost",
            **{name: value for name, value in os.environ.items() if name == NO_SANDBOX},
        }

    @property
    def requests(self) -> list[Request]:
        """The model calls in order, refused ones included."""
        return [request for request in self.all_requests if request.kind == "model"]

    @property
    def refusals(self) -> list[str]:
        """What was wrong with requests, in order."""
        return [request.refused for request in self.all_requests if request.refused]

    @property
    def remaining(self) -> int:
        """How many replies of a list are left."""
        return len(self.script) - self._used if isinstance(self.script, Sequence) else 0

    @property
    def gaps(self) -> list[float]:
        """Seconds between the end of one model call's response and the whole next request."""
        answered = [request for request in self.requests if request.ended]
        return [after.received - before.ended for before, after in pairwise(answered)]

    def prefix_breaks(self) -> list[tuple[int, int]]:
        """Where a request does not begin with the whole one before: `(index of the request, place in its items)`.

        Only neighbours of one protocol are compared; cache marks do not count.
        """
        found: list[tuple[int, int]] = []
        for before, after in pairwise(self.requests):
            if before.protocol != after.protocol:
                continue
            shared = count_shared(before.prefix_items, after.prefix_items)
            if shared < len(before.prefix_items):
                found.append((after.index, shared))
        return found

    async def wait_for_requests(self, count: int, timeout: float = 30.0) -> list[Request]:
        """Wait until so many model calls have come in."""
        async with asyncio.timeout(timeout):
            while len(self.requests) < count:
                await asyncio.sleep(0.005)
        return self.requests

    # --- life ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; the port is known afterwards."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything, running streams included."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            if connection.task is not None:
                connection.task.cancel()
            if connection.transport is not None:
                connection.transport.abort()
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connect(self) -> Connection:
        connection = Connection(self._handle)
        self._connections.add(connection)
        self.connections_made += 1
        return connection

    # --- one request ---

    async def _handle(self, connection: Connection, incoming: Incoming) -> None:
        request = self._record(incoming)
        wire = WIRES[request.protocol]
        try:
            if incoming.target.startswith("/_/"):
                await self._answer_control(connection, request)
                return
            if request.path == "/token":
                await respond(connection, request, 200, {}, encode(give_token(request.raw, self.options.clouds)))
                return
            if request.path in OPENROUTER:
                status, headers, body = self.openrouter.answer(request)
                await respond(connection, request, status, headers, encode(body))
                return
            if request.path == "/aws-keys":
                await respond(connection, request, 200, {}, encode(give_aws_keys(self.options.clouds)))
                return
            self._check_key(request)
            if request.kind == "models":
                await self._answer_models(connection, request)
            elif request.kind == "other":
                raise Refusal(f"Invalid URL ({request.method} {request.path})", status=404)
            else:
                await self._answer_call(connection, request, wire)
        except Refusal as refusal:
            request.refused = refusal.message
            said = (refusal.status, refusal.message, refusal.code, refusal.param)
            body = error_object(request.cloud, wire, *said)
            await respond(connection, request, refusal.status, {}, encode(body))
        except ConnectionError:
            request.aborted = True
            raise
        except Exception:
            self.faults.append(traceback.format_exc())
            if request.status:
                connection.drop()
                return
            await respond(connection, request, 500, {}, encode({"error": {"message": self.faults[-1]}}))
        except asyncio.CancelledError:
            request.aborted = connection.gone.is_set()
            raise
        finally:
            if not request.ended:
                request.ended = time.monotonic()
            request.parsed = None
            if not self.keep_bodies:
                request.raw = b""

    def _record(self, incoming: Incoming) -> Request:
        target = urlsplit(incoming.target).path if incoming.target.startswith("http://") else incoming.target
        path = target.partition("?")[0].rstrip("/")
        gemini = GEMINI.fullmatch(path)
        path = path if gemini else path.removeprefix("/v1") or "/"
        request = Request(incoming.method, path, incoming.headers, incoming.body, counter=self.options.counter)
        request.received_first, request.received = incoming.first_byte, incoming.complete
        request.raw_size = len(incoming.body)
        request.target = incoming.target
        if found := find_cloud(target.partition("?")[0]):
            request.cloud, parts = found
            request.path, request.kind, request.model = target.partition("?")[0], "model", model_in(parts)
            request.protocol = _protocol_of(request.cloud, request.path)
        elif gemini:
            request.protocol, request.model = "gemini", unquote(gemini["model"] or "")
            kinds = {"GET": "models", "streamGenerateContent": "model", "countTokens": "count"}
            request.kind = kinds.get(gemini["method"] or incoming.method, "other")  # pyright: ignore
        elif incoming.method == "POST" and path in ROUTES:
            request.protocol, counting = ROUTES[path]
            request.kind = "count" if counting else "model"
        elif incoming.method == "GET" and (path == "/models" or path.startswith("/models/")):
            request.kind = "models"
            request.protocol = "anthropic" if "anthropic-version" in incoming.headers else "chat"
        if request.kind == "model":
            request.index = self._calls
            self._calls += 1
        if not incoming.target.startswith("/_/"):
            self.all_requests.append(request)
        return request

    def _check_key(self, request: Request) -> None:
        if self.options.api_key is None or request.cloud:
            return
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        given = bearer or request.headers.get("x-api-key", "")
        given = given or request.headers.get("x-goog-api-key", "")
        if given == self.options.api_key:
            return
        if request.protocol == "gemini" and given:
            raise Refusal("API key not valid. Please pass a valid API key.", code="API_KEY_INVALID")
        if request.protocol == "gemini":
            raise Refusal("Method doesn't allow unregistered callers. Please use API Key.", status=403)
        if request.protocol == "anthropic":
            raise Refusal("invalid x-api-key" if given else "x-api-key header is required", status=401)
        if given:
            raise Refusal(f"Incorrect API key provided: {given[:4]}****.", status=401, code="invalid_api_key")
        raise Refusal("You didn't provide an API key. You need to provide your API key.", status=401)

    async def _answer_call(self, connection: Connection, request: Request, wire: ModuleType) -> None:
        body = read_json(request.raw)
        headers = request.headers
        if request.cloud:
            body, headers = check_cloud(request, body, self.options.clouds)
        else:
            body = request.with_model(body)
        request.parsed = body
        for name in self.options.refuse:
            if name in body:
                raise Refusal(f"Unrecognized request argument supplied: {name}", param=name)
        request.tools = len(request.tool_names)
        prefix, size = self._sizes(request, wire, body)
        if request.path == ENDPOINT:
            check_endpoint(body, self.options)
        if not self.options.lenient:
            check = CHECKS[request.protocol]
            check(body, headers, self.options, size, counting=request.kind == "count")
        if request.kind == "count":
            await respond(
                connection,
                request,
                200,
                {},
                encode({"object": "response.input_tokens", "input_tokens": size, "totalTokens": size}),
            )
            return
        reply = await self._next_reply(request)
        shared = count_shared(self._known.get(request.protocol, []), prefix)
        self._known[request.protocol] = prefix
        playback = Playback(
            connection, request, wire, self.options, size, min(size, self.options.counter.prompt(prefix[:shared]))
        )
        await playback.play(reply)

    def _sizes(self, request: Request, wire: ModuleType, body: dict[str, Any]) -> tuple[list[str], int]:
        """Return what the prefix cache sees, and the tokens; a lenient server only guesses, and so takes no time."""
        if self.options.lenient:
            return [], len(request.raw) // BYTES_A_TOKEN
        return prefix_of(wire, body), size_of(wire, body, self.options.counter)

    async def _next_reply(self, request: Request) -> AnyReply:
        if not isinstance(self.script, Sequence):
            made = self.script(request)
            return await made if inspect.isawaitable(made) else made
        if self._used >= len(self.script):
            raise Refusal(f"the script has no reply left (it had {len(self.script)})")
        self._used += 1
        return self.script[self._used - 1]

    # --- lists and control ---

    async def _answer_models(self, connection: Connection, request: Request) -> None:
        named = self.options.listed_window
        window = (self.options.window or 200_000) if named is None else named
        limit = self.options.max_output or 16_384
        if request.protocol == "gemini":
            await respond(connection, request, 200, {}, encode({"models": self._gemini_models(window, limit)}))
            return
        if request.protocol == "anthropic":
            models: list[dict[str, Any]] = [
                {"type": "model", "id": name, "display_name": name.title(), "created_at": "2026-01-01T00:00:00Z"}
                | ({"max_input_tokens": window, "max_tokens": limit, "capabilities": {}} if window else {})
                for name in self.options.models
            ]
            models = list(self.options.listing) or models
            listing = {"data": models, "has_more": False, "first_id": models[0]["id"], "last_id": models[-1]["id"]}
        else:
            models = [
                {"id": name, "object": "model", "created": 1_790_000_000, "owned_by": "tests"}
                | ({"context_length": window, "max_model_len": window} if window else {})
                for name in self.options.models
            ]
            listing = {"object": "list", "data": models}
        wanted = request.path.removeprefix("/models").strip("/")
        if not wanted:
            await respond(connection, request, 200, {}, encode(listing))
            return
        found = next((model for model in models if model["id"] == wanted), None)
        if found is None:
            raise Refusal(f"The model '{wanted}' does not exist", status=404, code="model_not_found")
        await respond(connection, request, 200, {}, encode(found))

    def _gemini_models(self, window: int, limit: int) -> list[dict[str, Any]]:
        methods = ["generateContent", "countTokens"]
        sizes = {"inputTokenLimit": window, "outputTokenLimit": limit} if window else {}
        embedding = {"name": "models/text-embedding", "supportedGenerationMethods": ["embedContent"]}
        named = [
            {"name": f"models/{name}", "supportedGenerationMethods": methods, **sizes} for name in self.options.models
        ]
        return [*named, embedding]

    async def _answer_control(self, connection: Connection, request: Request) -> None:
        """`GET /_/requests`: what was recorded; `POST /_/reset`: forget it and, with a body, play another script."""
        if request.path == "/_/reset":
            name = request.raw.decode().strip()
            if name:
                self.script = self.control["script"](name)
            self.all_requests.clear()
            self._known.clear()
            self._used = self._calls = 0
            await respond(connection, request, 200, {}, b"{}")
            return
        keys = ("kind", "protocol", "index", "received_first", "received", "started", "ended", "status", "aborted")
        rows = [
            {key: getattr(kept, key) for key in (*keys, "refused", "raw_size", "tools")} for kept in self.all_requests
        ]
        await respond(connection, request, 200, {}, encode(rows))


def _protocol_of(cloud: str, path: str) -> Protocol:
    if cloud != "azure":
        return "anthropic"
    return "responses" if path.endswith("/responses") else "chat"


class ServerThread:
    """The same server on a loop of its own in a thread, for tests that block."""

    def __init__(self, script: Script, **options: Any) -> None:
        self.server = ScriptedServer(script, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(10)
        return self.server

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def read_json(raw: bytes) -> dict[str, Any]:
    """Parse a body as the real APIs do: UTF-8, one object, no lone surrogates."""
    try:
        body = json.loads(raw.decode("utf-8"))
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        place = f"line 1 column {error.start} (char {error.start})"
        raise Refusal(f"The request body is not valid JSON: no low surrogate in string: {place}") from None
    except ValueError as error:
        raise Refusal(f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refusal("The request body is not valid JSON: expected an object")
    return body


def prefix_of(wire: ModuleType, body: dict[str, Any]) -> list[str]:
    """Return the prefix items of a body whose shape is not checked yet."""
    try:
        return wire.prefix_items(body)
    except (TypeError, KeyError, AttributeError):
        return [json.dumps(body)]


def size_of(wire: ModuleType, body: dict[str, Any], counter: Counter) -> int:
    """Return the tokens that the model reads of a body whose shape is not checked yet."""
    try:
        return counter.prompt(getattr(wire, "rendered_items", wire.prefix_items)(body))
    except (TypeError, KeyError, AttributeError):
        return counter.prompt([json.dumps(body)])


def count_shared(before: list[str], after: list[str]) -> int:
    """Return how many leading items two prefixes share."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count
