"""Model servers on this machine: Ollama, LM Studio, llama.cpp on their usual ports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tenuto.model import wire_json
from tenuto.model.model_list import facts_from_list

USUAL_PORTS = (("ollama", 11434), ("lmstudio", 1234), ("llamacpp", 8080))
PROBE_SECONDS = 0.4
MAX_LIST_BYTES = 1_000_000


class LocalServer(Struct, frozen=True):
    """A server that answered; `models` are the names that it serves."""

    provider: str
    base_url: str
    models: tuple[str, ...]


async def find_local_servers(ports: Sequence[tuple[str, int]] = USUAL_PORTS) -> list[LocalServer]:
    """Return the servers that answer `/v1/models` within a moment, in the order of the ports. Never raises."""
    found = await asyncio.gather(*(_probe(provider, port) for provider, port in ports))
    return [server for server in found if server is not None]


async def _probe(provider: str, port: int) -> LocalServer | None:
    """Ask one port. Plain sockets: httpx is not imported for a question that is mostly refused."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                request = f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n"
                writer.write(request.encode())
                await writer.drain()
                answer = b""
                found: dict[str, Any] | None = None
                while found is None and len(answer) < MAX_LIST_BYTES and (more := await reader.read(MAX_LIST_BYTES)):
                    answer += more
                    found = _read_list(answer)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return None
    names = tuple(facts.name for facts in facts_from_list(provider, found or {}))
    return LocalServer(provider, f"http://127.0.0.1:{port}/v1", names) if names else None


def _read_list(answer: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a complete answer, `None` while it is none: some servers keep the connection open."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        return None
    return wire_json.decode_object(body[body.find(b"{") : body.rfind(b"}") + 1] or b"-")
