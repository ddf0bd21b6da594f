"""Which providers there are, built in, of the settings, on this machine; and what was learned of their models."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tenuto.config.settings import ProviderSettings, Settings
from tenuto.guard.secrets import KNOWN
from tenuto.model.access.stored import FILE, InKeyring, read_stored
from tenuto.model.endpoint import Cloud, Endpoint, ProviderKind, host_of
from tenuto.model.json_files import read_json, write_json
from tenuto.model.model_list import facts_from_list
from tenuto.protocol.model import ModelError, ModelFacts
from tenuto.text import json_access
from tenuto.text.matching import nearest

LIST_MAX_AGE = 7 * 24 * 3600.0
"""Seconds for which a provider's list of models is not asked for again."""
LEARNED_MAX_AGE = 7 * 24 * 3600.0
"""Seconds for which a window that a refusal named is believed without another refusal."""
LOCAL_LIST_MAX_AGE = 60.0
"""The same for a server on this machine, which may have been started again with another window."""


class LearnedWindow(msgspec.Struct, frozen=True):
    """A window in tokens that a refusal named, and when (seconds since the epoch)."""

    tokens: int
    learned: float = 0.0


class LearnedWindows:
    """`models.json`: windows that a provider's refusal named; by provider, model and base URL.

    One that is older than `LEARNED_MAX_AGE` counts no more: the provider may serve the model with another by now.
    """

    def __init__(self, home: Path, clock: Callable[[], float]) -> None:
        self.path = home / "models.json"
        self._clock = clock
        self._windows: dict[str, LearnedWindow] | None = None

    def get(self, model_id: str, base_url: str) -> LearnedWindow | None:
        """Return the learned window, `None` when nothing was learned of late."""
        found = self._load().get(_key(model_id, base_url))
        return found if found is not None and self._clock() - found.learned < LEARNED_MAX_AGE else None

    def learn(self, model_id: str, base_url: str, limit: int) -> bool:
        """Keep `limit` if it is lower than what was learned before; whether it is. A failing disk is no failure."""
        self._windows = None
        known = self.get(model_id, base_url)
        if known is not None and known.tokens <= limit:
            return False
        self._load()[_key(model_id, base_url)] = LearnedWindow(limit, self._clock())
        self._store()
        return True

    def forget(self, model_id: str, base_url: str) -> None:
        """Drop what was learned of a model."""
        self._windows = None
        if self._load().pop(_key(model_id, base_url), None) is not None:
            self._store()

    def _store(self) -> None:
        with contextlib.suppress(OSError):
            write_json(self.path, {"windows": self._load()})

    def _load(self) -> dict[str, LearnedWindow]:
        if self._windows is None:
            found = read_json(self.path, dict[str, dict[str, LearnedWindow | int]]) or {}
            self._windows = {
                key: LearnedWindow(window) if isinstance(window, int) else window  # an older version wrote no time
                for key, window in found.get("windows", {}).items()
            }
        return self._windows


def _key(model_id: str, base_url: str) -> str:
    return f"{model_id} {base_url}".strip()


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said of its models, and when (seconds since the epoch)."""

    fetched: float
    models: tuple[ModelFacts, ...]

    def find(self, name: str) -> ModelFacts | None:
        """Return the model with this name."""
        return next((facts for facts in self.models if facts.name == name), None)


def list_path(home: Path, provider: str, base_url: str) -> Path:
    """Return where the list of one provider at one address is kept."""
    readable = re.sub(r"[^\w.-]", "_", provider)[:40]
    return home / "cache" / f"models-{readable}-{hashlib.sha256(base_url.encode()).hexdigest()[:8]}.json"


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
    return json_access.decode_object(body[body.find(b"{") : body.rfind(b"}") + 1] or b"-")


BUILT_IN: Mapping[str, tuple[ProviderKind, str, str, str]] = {
    "anthropic": ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": ("openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "gemini": (
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
    ),
    "openrouter": ("openai-chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
}
"""Name: wire, address, the variable of the key, the variable of the address."""

CLOUDS: Mapping[str, tuple[Cloud, ProviderKind]] = {
    "bedrock": ("bedrock", "anthropic"),
    "vertex": ("vertex", "anthropic"),
    "azure": ("azure", "openai-chat"),
}
"""Names of providers that an SDK reaches: whose it is, and what is spoken there (Azure: or Responses)."""
AZURE_VERSION = "2025-04-01-preview"
"""Of Azure's interface, where nobody names one."""
OTHER_VARIABLES = {"GEMINI_API_KEY": "GOOGLE_API_KEY", "AZURE_OPENAI_API_KEY": "AZURE_OPENAI_AD_TOKEN"}
"""What is looked at where the variable of a key is not set."""
LOCAL_PORTS = dict(USUAL_PORTS)


class Endpoints:
    """Finds the endpoint of a provider's name."""

    def __init__(self, settings: Settings, home: Path, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._home = home
        self._environ = environ
        self._added: Mapping[str, ProviderSettings] = {}

    def use_added(self, added: Mapping[str, ProviderSettings]) -> None:
        """Know these providers too, beside those of the settings and behind them."""
        self._added = added

    def use_settings(self, settings: Settings) -> None:
        """Go by other settings from now on."""
        self._settings = settings

    def names(self) -> list[str]:
        """Return the built-in providers, those of the settings, and those that were added."""
        return list(dict.fromkeys([*BUILT_IN, *self._settings.providers, *self._added]))

    def ready(self) -> list[Endpoint]:
        """Return the endpoints that can be used: with a key, or without the need of one."""
        found: list[Endpoint] = []
        for name in self.names():
            with contextlib.suppress(ModelError):  # a setting is wrong, which is said where it is used
                endpoint = self.get(name)
                found += [endpoint] if self.missing_key(endpoint) is None else []
        return found

    def get(self, provider: str) -> Endpoint:
        """Return the endpoint of a provider. Raises `ModelError` for an unknown name."""
        own = self._settings.providers.get(provider) or self._added.get(provider)
        if provider in BUILT_IN:
            return self._built_in(provider, own)
        if provider in CLOUDS:
            return self._cloud(provider, own or ProviderSettings())
        if own is not None:
            return self._make(provider, own.kind, own.base_url, own.api_key_env, own)
        if provider in LOCAL_PORTS:
            return self._make(provider, "openai-chat", f"http://127.0.0.1:{LOCAL_PORTS[provider]}/v1", "")
        known = list(dict.fromkeys([*self.names(), *CLOUDS, *LOCAL_PORTS, "offline"]))
        place = f"[providers.{provider}] in {self._home / 'settings.toml'}"
        near = nearest(provider, known)
        meant = f"did you mean {near}? " if near else ""
        hint = f"{meant}known are {', '.join(known)}; others are added under {place}"
        raise ModelError("not_found", f"there is no provider “{provider}”", hint=hint)

    def local(self, servers: Iterable[LocalServer]) -> list[Endpoint]:
        """Return the endpoints of servers that were found on this machine."""
        return [self._make(server.provider, "openai-chat", server.base_url, "") for server in servers]

    def missing_key(self, endpoint: Endpoint) -> ModelError | None:
        """Return the error for a provider that needs a key and has none."""
        if endpoint.has_key or not endpoint.key_name or endpoint.is_local or _carries_key(endpoint):
            return None
        hint = (
            f"set {endpoint.key_name}, run tenuto login {endpoint.provider}, or choose another model with /model or "
            "--model; offline/tenuto needs no key"
        )
        return ModelError("auth", f"there is no key for {endpoint.provider}", hint=hint)

    def source_of_key(self, endpoint: Endpoint) -> str:
        """Return where the key of an endpoint comes from, and never the key; empty where it has none and needs one."""
        if endpoint.key_command:
            return "api_key_cmd of the settings"
        if endpoint.is_stored:
            return "the keyring" if endpoint.keyring else FILE
        if endpoint.key:
            return "ANTHROPIC_AUTH_TOKEN" if endpoint.bearer_only else endpoint.key_name
        if self.missing_key(endpoint) is not None:
            return ""
        return "not needed" if endpoint.is_local or not endpoint.key_name else "a header of the settings"

    def _built_in(self, provider: str, own: ProviderSettings | None) -> Endpoint:
        kind, base_url, key_name, url_name = BUILT_IN[provider]
        base_url = self._environ.get(url_name, "") or base_url
        if own is not None:
            # `kind` cannot be told from its default: these names always mean their wires.
            kind = kind if provider in ("anthropic", "gemini") else own.kind
            base_url, key_name = own.base_url or base_url, own.api_key_env or key_name
        return self._make(provider, kind, base_url, key_name, own)

    def _cloud(self, provider: str, own: ProviderSettings) -> Endpoint:
        """Return the endpoint of a cloud. Raises `ModelError` for a region or an address that nobody names."""
        cloud, kind = CLOUDS[provider]
        region, address, key_name = own.region, own.base_url, ""
        if cloud == "azure":
            kind = "openai" if own.kind == "openai" else kind
            address = address or self._first("AZURE_OPENAI_ENDPOINT")
            key_name = own.api_key_env or "AZURE_OPENAI_API_KEY"
            if not address:
                raise _missing("address", "AZURE_OPENAI_ENDPOINT", "base_url", provider)
        else:
            names = ("AWS_REGION", "AWS_DEFAULT_REGION") if cloud == "bedrock" else ("CLOUD_ML_REGION",)
            region = region or self._first(*names)
            if not region and not own.aws_profile:
                raise _missing("region", names[0], "region", provider)
            host = (
                f"bedrock-runtime.{region}.amazonaws.com"
                if cloud == "bedrock"
                else f"{region}-aiplatform.googleapis.com"
            )
            address = address or f"https://{host}"
        found = self._make(provider, kind, address, key_name, own)
        return msgspec.structs.replace(
            found,
            base_url=address.strip().rstrip("/"),
            cloud=cloud,
            has_own_address=bool(own.base_url),
            region=region,
            profile=own.aws_profile,
            project=own.project or self._first("ANTHROPIC_VERTEX_PROJECT_ID"),
            deployment=own.deployment,
            api_version=own.api_version or self._first("OPENAI_API_VERSION") or AZURE_VERSION,
            **({} if cloud == "azure" else {"key": "", "bearer_only": False}),
        )

    def _first(self, *names: str) -> str:
        """Return the first of these variables that is set."""
        return next(filter(None, (self._environ.get(name, "") for name in names)), "")

    def _make(
        self, provider: str, kind: ProviderKind, base_url: str, key_name: str, own: ProviderSettings | None = None
    ) -> Endpoint:
        own = own or ProviderSettings()
        base_url = base_url.strip().rstrip("/")
        if not base_url.startswith(("http://", "https://")) or not host_of(base_url):
            hint = f"set base_url under [providers.{provider}], for example https://host/v1"
            raise ModelError("invalid", f"the address “{base_url}” of {provider} is not a URL", hint=hint)
        if key_name in OTHER_VARIABLES and not self._environ.get(key_name):
            other = OTHER_VARIABLES[key_name]
            key_name = other if self._environ.get(other) else key_name
        key = self._environ.get(key_name, "") if key_name else ""
        command = own.api_key_cmd if not key else ""
        stored = read_stored(self._home).get(provider, "") if not (key or command) else ""
        service = stored.keyring if isinstance(stored, InKeyring) else ""
        key = key or (stored if isinstance(stored, str) else "")
        token = (
            self._environ.get("ANTHROPIC_AUTH_TOKEN", "")
            if kind == "anthropic" and not (key or command or service)
            else ""
        )
        KNOWN.learn(key_name or f"key of {provider}", key or token)
        KNOWN.learn_url(f"password of {provider}", base_url)
        for name, value in own.headers.items():
            KNOWN.learn(f"header {name}", value.removeprefix("Bearer "))
        request = self._settings.request
        return Endpoint(
            provider=provider,
            kind=kind,
            base_url=base_url.removesuffix("/v1") if kind == "anthropic" else base_url,
            key=(key or token).strip(),
            key_name=key_name,
            bearer_only=bool(token),
            key_command=command,
            key_seconds=own.api_key_seconds,
            is_stored=bool(stored),
            keyring=service,
            headers=own.headers,
            connect_timeout=request.connect_timeout,
            stream_timeout=request.stream_timeout,
            max_request_bytes=request.max_request_bytes,
        )


def _missing(what: str, variable: str, setting: str, provider: str) -> ModelError:
    hint = f"set {variable}, or {setting} under [providers.{provider}]"
    return ModelError("invalid", f"nobody says the {what} of {provider}", hint=hint)


def _carries_key(endpoint: Endpoint) -> bool:
    """Whether the settings give a header that authenticates."""
    return any(name.lower() in {"authorization", "x-api-key", "api-key"} for name in endpoint.headers)
