"""Which providers there are: built in, of the settings, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tenuto.config.settings import ProviderSettings, Settings
from tenuto.model.auth import read_keys
from tenuto.model.endpoint import Endpoint, ProviderKind, host_of
from tenuto.model.local_servers import USUAL_PORTS, LocalServer
from tenuto.protocol.model import ModelError
from tenuto.text.nearest import nearest

BUILT_IN: Mapping[str, tuple[ProviderKind, str, str, str]] = {
    "anthropic": ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openai": ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": ("openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
}
"""Name: wire, address, the variable of the key, the variable of the address."""

LOCAL_PORTS = dict(USUAL_PORTS)


class Endpoints:
    """Finds the endpoint of a provider's name."""

    def __init__(self, settings: Settings, home: Path, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._home = home
        self._environ = environ

    def names(self) -> list[str]:
        """Return the built-in providers and those of the settings."""
        return list(dict.fromkeys([*BUILT_IN, *self._settings.providers]))

    def ready(self) -> list[Endpoint]:
        """Return the endpoints that can be used: with a key, or without the need of one."""
        endpoints = [self.get(name) for name in self.names()]
        return [endpoint for endpoint in endpoints if self.missing_key(endpoint) is None]

    def get(self, provider: str) -> Endpoint:
        """Return the endpoint of a provider. Raises `ModelError` for an unknown name."""
        own = self._settings.providers.get(provider)
        if provider in BUILT_IN:
            return self._built_in(provider, own)
        if own is not None:
            return self._make(provider, own.kind, own.base_url, own.api_key_env, own.headers)
        if provider in LOCAL_PORTS:
            return self._make(provider, "openai-chat", f"http://127.0.0.1:{LOCAL_PORTS[provider]}/v1", "", {})
        known = [*self.names(), *LOCAL_PORTS, "offline"]
        place = f"[providers.{provider}] in {self._home / 'settings.toml'}"
        near = nearest(provider, known)
        meant = f"did you mean {near}? " if near else ""
        hint = f"{meant}known are {', '.join(known)}; others are added under {place}"
        raise ModelError("not_found", f"there is no provider “{provider}”", hint=hint)

    def local(self, servers: Iterable[LocalServer]) -> list[Endpoint]:
        """Return the endpoints of servers that were found on this machine."""
        return [self._make(server.provider, "openai-chat", server.base_url, "", {}) for server in servers]

    def missing_key(self, endpoint: Endpoint) -> ModelError | None:
        """Return the error for a provider that needs a key and has none."""
        if endpoint.key or not endpoint.key_name or endpoint.is_local or _carries_key(endpoint):
            return None
        hint = f"set {endpoint.key_name}, or choose another model with /model or --model; offline/tenuto needs no key"
        return ModelError("auth", f"there is no key for {endpoint.provider}", hint=hint)

    def _built_in(self, provider: str, own: ProviderSettings | None) -> Endpoint:
        kind, base_url, key_name, url_name = BUILT_IN[provider]
        base_url = self._environ.get(url_name, "") or base_url
        headers: Mapping[str, str] = {}
        if own is not None:
            # `kind` cannot be told from its default: Anthropic's name always means its wire.
            kind = kind if provider == "anthropic" else own.kind
            base_url, key_name, headers = own.base_url or base_url, own.api_key_env or key_name, own.headers
        return self._make(provider, kind, base_url, key_name, headers)

    def _make(
        self, provider: str, kind: ProviderKind, base_url: str, key_name: str, headers: Mapping[str, str]
    ) -> Endpoint:
        base_url = base_url.strip().rstrip("/")
        if not base_url.startswith(("http://", "https://")) or not host_of(base_url):
            hint = f"set base_url under [providers.{provider}], for example https://host/v1"
            raise ModelError("invalid", f"the address “{base_url}” of {provider} is not a URL", hint=hint)
        key = (self._environ.get(key_name, "") if key_name else "") or read_keys(self._home).get(provider, "")
        token = self._environ.get("ANTHROPIC_AUTH_TOKEN", "") if kind == "anthropic" and not key else ""
        request = self._settings.request
        return Endpoint(
            provider=provider,
            kind=kind,
            base_url=base_url.removesuffix("/v1") if kind == "anthropic" else base_url,
            key=(key or token).strip(),
            key_name=key_name,
            bearer_only=bool(token),
            headers=headers,
            connect_timeout=request.connect_timeout,
            stream_timeout=request.stream_timeout,
            max_request_bytes=request.max_request_bytes,
        )


def _carries_key(endpoint: Endpoint) -> bool:
    """Whether the settings give a header that authenticates."""
    return any(name.lower() in {"authorization", "x-api-key", "api-key"} for name in endpoint.headers)
