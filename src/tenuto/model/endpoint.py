"""Where a provider is reached and with which key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

ProviderKind = Literal["anthropic", "openai", "openai-chat", "gemini"]
Cloud = Literal["", "bedrock", "vertex", "azure"]


VENDOR_HOSTS: dict[ProviderKind, str] = {"anthropic": "api.anthropic.com", "openai": "api.openai.com"}
"""Where those are who made a protocol that has a web search of its own. Chat Completions documents none."""
SEARCH_PRICE = 0.01
"""US dollars of one web search at both, beside the tokens of what it brings."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One provider as the user named it. `key_name` is the variable that holds the key, for messages."""

    provider: str
    kind: ProviderKind
    base_url: str
    key: str = ""
    key_name: str = ""
    key_command: str = ""
    """The user's command that prints the key, where it is not known."""
    key_seconds: float = 3600.0
    """How long what it printed is used."""
    is_stored: bool = False
    """Whether `tenuto login` has stored the key."""
    keyring: str = ""
    """The service under which the key is in the system's keyring, where it is not known."""
    bearer_only: bool = False
    """The key is a token for `Authorization: Bearer` and nothing else (ANTHROPIC_AUTH_TOKEN)."""
    cloud: Cloud = ""
    """Whose SDK reaches it, where that is none of ours."""
    has_own_address: bool = False
    """Whether the user named the address, which the SDK else knows."""
    region: str = ""
    profile: str = ""
    """AWS: the profile of the user's configuration there."""
    project: str = ""
    deployment: str = ""
    api_version: str = ""
    headers: Mapping[str, str] = {}
    connect_timeout: float = 15.0
    stream_timeout: float = 300.0
    max_request_bytes: int = 20_000_000

    @property
    def host(self) -> str:
        """The server's host name, empty when the URL has none."""
        return host_of(self.base_url)

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine or in the local network, so that no key is needed."""
        host = self.host
        return (
            host in {"localhost", "::1", "0.0.0.0"}
            or host.startswith(("127.", "10.", "192.168."))
            or host.endswith((".local", ".localhost", ".internal"))
        )

    @property
    def is_vendors_own(self) -> bool:
        """Whether the server is that of the protocol's own maker."""
        return self.host == VENDOR_HOSTS.get(self.kind)

    @property
    def search_price(self) -> float | None:
        """US dollars of one web search, `None` where nobody says."""
        return SEARCH_PRICE if self.is_vendors_own else None

    def url(self, path: str) -> str:
        """Return the full URL of `path`, which begins with a slash."""
        return self.base_url.rstrip("/") + path

    @property
    def has_key(self) -> bool:
        """Whether there is a key, known or to be fetched."""
        return bool(self.key or self.key_command or self.keyring)

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry a key; none for an empty one.

        Anthropic's API takes it as a bearer token; gateways may know only `x-api-key`, so both go to every other
        address (anchors A1.1).
        """
        if not key:
            return {}
        if self.kind == "gemini":
            return {"x-goog-api-key": key}
        both = self.kind == "anthropic" and not self.is_vendors_own and not self.bearer_only
        return {"authorization": f"Bearer {key}", **({"x-api-key": key} if both else {})}

    def bearer_headers(self) -> dict[str, str]:
        """Return the headers of both OpenAI protocols."""
        accept = "text/event-stream, application/json"
        return {"content-type": "application/json", "accept": accept, **self.key_headers(self.key), **self.headers}


def host_of(url: str) -> str:
    """Return the host name in a URL, empty when it is no URL with a host."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
