"""The models that can be used: what is known of them, and the clients that reach them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tenuto.config.settings import ModelSettings, ProviderSettings, Settings
from tenuto.guard.secrets import KNOWN
from tenuto.model import model_list
from tenuto.model.access.supply import KeySupply, RunCommand, supply_for
from tenuto.model.catalogue.lookup import Catalogue
from tenuto.model.catalogue.snapshot import FETCHED, CatalogueError
from tenuto.model.efforts import explain_effort, explain_suffix, find_levels, odd_suffix
from tenuto.model.endpoint import VENDOR_HOSTS, Endpoint
from tenuto.model.endpoints import (
    LIST_MAX_AGE,
    LOCAL_LIST_MAX_AGE,
    LOCAL_PORTS,
    Endpoints,
    LearnedWindows,
    LocalServer,
    ModelList,
    find_local_servers,
    list_path,
)
from tenuto.model.http.transport import make_transport
from tenuto.model.json_files import read_json, write_json
from tenuto.model.offline import FACTS as OFFLINE_FACTS
from tenuto.model.offline import OfflineClient
from tenuto.model.wire.conversation import LoadBlob
from tenuto.protocol.model import ModelClient, ModelError, ModelFacts, Quirks
from tenuto.text import json_access
from tenuto.text.late import late

OFFLINE = "offline"
OFFLINE_MODEL = "offline/tenuto"
DEFAULT_MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6-sol",
    "gemini": "gemini-3.8-flash",
}
"""What a first run uses when the environment has a key: the provider's all-round model."""
LIST_SECONDS = 6.0
RECENT = "cache/recent-models.json"
RECENT_MODELS = 8
"""So many are kept."""
NO_CHAT = late(r"embed|rerank|whisper|tts|transcri|dall-e|image|moderation|realtime|audio|sora|babbage|davinci", re.I)
"""Names of models that answer no conversation; a list says nothing else of them."""

NO_WEB_SEARCH = late(r"claude-(?:instant|2|3-(?:opus|sonnet|haiku))|gpt-3|gpt-4(?:-|$)|gpt-4\.1-nano|o1(?:-|$)")
"""Names of models of the vendors whose requests are refused with a web search among the tools."""


class Provided(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that an extension brings: an address, or a client of its own."""

    name: str
    models: tuple[ModelFacts, ...]
    settings: ProviderSettings
    client: Any = None
    """A `ModelClient`."""


class ModelRegistry:
    """Facts and clients by name. `load_blob` gives the bytes of an image by its hash; it may be set later.

    `run_command` runs the commands that print keys.
    """

    def __init__(
        self,
        settings: Settings,
        home: Path,
        environ: Mapping[str, str],
        load_blob: LoadBlob | None = None,
        clock: Callable[[], float] = time.time,
        *,
        run_command: RunCommand | None = None,
    ) -> None:
        self._settings = settings
        self._home = home
        self._clock = clock
        self._run_command = run_command
        self._endpoints = Endpoints(settings, home, environ)
        self._learned = LearnedWindows(home, clock)
        self.catalogue = Catalogue(home / FETCHED)
        self._believed: dict[str, int] = {}
        self._named: set[str] = set()
        self._lists: dict[str, ModelList | None] = {}
        self._asked: set[str] = set()
        self._silent: dict[str, str] = {}
        self._clients: dict[str, ModelClient] = {}
        self._local: list[LocalServer] = []
        self._provided: dict[str, Provided] = {}
        self.load_blob: LoadBlob = load_blob or _no_blob

    def use_settings(self, settings: Settings) -> None:
        """Go by other settings from now on; providers are the same in them."""
        self._settings = settings
        self._endpoints.use_settings(settings)

    def provider_names(self) -> list[str]:
        """Return the names of providers that are there without extensions."""
        return [*(name for name in self._endpoints.names() if name not in self._provided), *LOCAL_PORTS, OFFLINE]

    def has_provider(self, model_id: str) -> bool:
        """Say whether a model's provider is known by now."""
        provider = model_id.partition("/")[0]
        return provider in self._provided or provider in self.provider_names()

    def use_provided(self, provided: Iterable[Provided]) -> None:
        """Have these providers beside one's own, in the place of earlier ones that were added so."""
        for name in self._provided:
            self._clients.pop(name, None)
        self._provided = {one.name: one for one in provided}
        self._endpoints.use_added({one.name: one.settings for one in self._provided.values() if one.client is None})

    def _has_no_address(self, provider: str) -> bool:
        """Say whether a provider is a function in this process."""
        provided = self._provided.get(provider)
        return provider == OFFLINE or (provided is not None and provided.client is not None)

    def _registered(self, provider: str, name: str) -> ModelFacts | None:
        """Return what an extension says of a model."""
        models = self._provided[provider].models if provider in self._provided else ()
        return next((facts for facts in models if facts.name == name), None)

    def _require_registered(self, provided: Provided, name: str) -> None:
        names = [facts.name for facts in provided.models]
        if name not in names:
            hint = f"it has {', '.join(names)}"
            raise ModelError("not_found", f"the provider {provided.name} has no model “{name}”", hint=hint)

    def require(self, model_id: str) -> None:
        """Check that a model can be called: its provider is known and has its key. Raises `ModelError`."""
        provider, name = split_id(model_id)
        if provider == OFFLINE:
            if name != OFFLINE_FACTS.name:
                raise ModelError("not_found", f"there is no model “{model_id}”", hint=f"it is called {OFFLINE_MODEL}")
            return
        provided = self._provided.get(provider)
        if provided is not None and provided.client is not None:
            self._require_registered(provided, name)
            return
        missing = self._endpoints.missing_key(self._endpoints.get(provider))
        if missing is not None:
            raise missing

    async def require_name(self, model_id: str) -> None:
        """Check that what stands behind the last colon of a model belongs to its name. Raises `ModelError`.

        What only looks like a mistyped effort is looked for in the provider's list first. The settings, too, may name
        a model; and of a server on this machine that gives no list nobody knows what it has.
        """
        provider, name = split_id(model_id)
        if self._has_no_address(provider) or not odd_suffix(name) or model_id in self._settings.models:
            return
        if self.catalogue.has_name(name):
            return
        endpoint = self._endpoints.get(provider)
        await self._ask_list(endpoint)
        stored = self._stored_list(endpoint)
        if (stored is None and endpoint.is_local) or (stored is not None and stored.find(name) is not None):
            return
        base = model_id.rpartition(":")[0]
        hint = f'if the name is right, put [models."{model_id}"] into settings.toml'
        raise ModelError("not_found", explain_suffix(model_id, self.facts(base).efforts), hint=hint)

    def efforts(self, facts: ModelFacts) -> tuple[str, ...] | None:
        """Return the levels that a model has; none for one that has no choice, `None` where nobody knows."""
        if facts.efforts:
            return facts.efforts
        if facts.provider == OFFLINE:
            return ()
        if self._has_no_address(facts.provider):
            return None
        row = find_levels(facts.name, self._endpoints.get(facts.provider).kind)
        return None if row is None or facts.thinking else row.levels

    def takes(self, facts: ModelFacts, effort: str) -> bool:
        """Whether a model can be asked for an effort, as far as anybody knows; for none at all it always can."""
        levels = self.efforts(facts)
        return not effort or levels is None or effort in levels

    def require_effort(self, facts: ModelFacts, effort: str) -> None:
        """Check that a model has a level of effort. Raises `ModelError` that names those that it has."""
        if not self.takes(facts, effort):
            raise ModelError("not_found", explain_effort(facts.id, effort, self.efforts(facts) or ()))

    def facts(self, model_id: str) -> ModelFacts:
        """Return what is known of a model without asking anybody.

        Each number: the provider's stored list, else the catalogue (by address, else by name). The window is lowered
        by what a refusal named; the user's settings win over all but what this process was refused. Raises
        `ModelError` for an unknown provider.
        """
        provider, name = split_id(model_id)
        if provider == OFFLINE:
            return self._apply_settings(msgspec.structs.replace(OFFLINE_FACTS, name=name))
        registered = self._registered(provider, name)
        if self._has_no_address(provider):
            facts = registered or ModelFacts(provider=provider, name=name)
            return _lowered(self._apply_settings(facts), self._believed.get(model_id))
        endpoint = self._endpoints.get(provider)
        stored = self._stored_list(endpoint)
        listed = stored.find(name) if stored else None
        facts = registered or listed or ModelFacts(provider=provider, name=name)
        facts = model_list.complete(self.catalogue.complete(facts, endpoint), endpoint.kind)
        learned = self._learned.get(model_id, endpoint.base_url)
        facts = _lowered(facts, learned.tokens if learned is not None else None)
        return _lowered(self._apply_settings(facts), self._believed.get(model_id))

    async def refresh(self, model_id: str) -> ModelFacts:
        """Return the facts after asking the provider's list, once; a list of the last days is not asked for again.

        A provider that does not answer costs a few seconds and no error. A window from the settings needs no list.
        """
        provider, _ = split_id(model_id)
        own = self._settings.models.get(model_id)
        if not self._has_no_address(provider) and (own is None or own.context_window is None):
            await self._ask_list(self._endpoints.get(provider))
        return self.facts(model_id)

    async def refresh_catalogue(self, model_id: str) -> None:
        """Fetch a newer catalogue if the present one is a week old. Never raises; `tenuto models` says what failed.

        Nothing is asked of the net for a model that is offline or local: its user may want nothing to leave the place.
        """
        provider, _ = split_id(model_id)
        if self._has_no_address(provider) or self._endpoints.get(provider).is_local:
            return
        from tenuto.model.catalogue.refresh import is_due, refresh

        if not is_due(self._home, self.catalogue.made, self._clock()):
            return
        try:
            await refresh(self._home, self._settings.catalogue.url, self._clock())
        except CatalogueError:
            return
        self.catalogue = Catalogue(self._home / FETCHED)

    async def available(self) -> list[ModelFacts]:
        """Return the models that can be used now: of every provider with a key, of local servers, and offline."""
        self._local = await find_local_servers()
        endpoints = [*self._endpoints.ready(), *self._endpoints.local(self._local)]
        for provider in self._silent:  # it may answer by now
            self._asked.discard(str(self._list_path(self._endpoints.get(provider))))
        self._silent = {}
        await asyncio.gather(*(self._ask_list(endpoint) for endpoint in endpoints))
        return [self.facts(name) for name in self._names(endpoints)]

    def silent(self) -> list[str]:
        """Return a line for each provider that was asked for its list in vain, when all of them were asked last."""
        return [f"{provider} gives no list of its models: {why}" for provider, why in self._silent.items()]

    def is_listed(self, model_id: str) -> bool | None:
        """Say whether a model is in its provider's list, `None` where there is no list."""
        provider, name = split_id(model_id)
        stored = None if self._has_no_address(provider) else self._stored_list(self._endpoints.get(provider))
        return None if stored is None else stored.find(name) is not None

    def recent(self) -> list[str]:
        """Return the models that the user chose last, the newest first."""
        return read_json(self._home / RECENT, list[str]) or []

    def note_chosen(self, model_id: str) -> None:
        """Keep that the user chose a model. A failing disk is no failure."""
        chosen = [model_id, *(name for name in self.recent() if name != model_id)]
        with contextlib.suppress(OSError):
            write_json(self._home / RECENT, chosen[:RECENT_MODELS])

    def known_names(self) -> list[str]:
        """Return the ids of the models of every provider with a key, as far as they are known without asking it."""
        return self._names(self._endpoints.ready())

    def _names(self, endpoints: Iterable[Endpoint]) -> list[str]:
        names = [name for name in self._settings.models if self._is_usable(name)]
        registered = [facts.id for provided in self._provided.values() for facts in provided.models]
        names += filter(self._is_usable, registered)
        for endpoint in endpoints:
            stored = self._stored_list(endpoint)
            listed = [facts.name for facts in stored.models] if stored else []
            known = listed or self._catalogued(endpoint)
            names += [f"{endpoint.provider}/{name}" for name in known]
        return list(dict.fromkeys([*names, OFFLINE_MODEL]))

    def default_model(self) -> str:
        """Return the model of a first run: of the settings, of a key in the environment, of a local server that was
        found (`find_default_model`), else offline.
        """
        if self._settings.model:
            return self._settings.model
        for provider, name in DEFAULT_MODELS.items():
            if self._endpoints.get(provider).has_key:
                model = f"{provider}/{name}"
                return self.listed_instead(model) or model
        for server in self._local:
            return f"{server.provider}/{server.models[0]}"
        return OFFLINE_MODEL

    def is_catalogued(self, provider: str) -> bool:
        """Say whether the names of a provider's models are known."""
        return provider != OFFLINE and bool(self._catalogued(self._endpoints.get(provider)))

    def newest_of(self, provider: str, family: str) -> str:
        """Return the newest model of a provider whose name has that word in it, by its numbers; empty for none."""
        if provider == OFFLINE:
            return ""
        names = [name for name in self._catalogued(self._endpoints.get(provider)) if family in name.lower().split("-")]
        newest = max(names, key=_version, default="")
        return f"{provider}/{newest}" if newest else ""

    def listed_instead(self, model_id: str) -> str:
        """Return what to use instead of a model that its provider does not list: the first that it lists and that
        answers in text. Empty: it lists the model, or its list is not known.
        """
        provider, name = split_id(model_id)
        stored = None if self._has_no_address(provider) else self._stored_list(self._endpoints.get(provider))
        if stored is None or stored.find(name) is not None:
            return ""
        usable = (facts.id for facts in stored.models if not NO_CHAT.search(facts.name))
        return next(usable, "")

    async def find_default_model(self) -> str:
        """Look for local servers if nothing else decides, then return the default model."""
        if self.default_model() == OFFLINE_MODEL:
            self._local = await find_local_servers()
        return self.default_model()

    def found_at(self, model_id: str) -> str:
        """Return the address of a model whose server was found by looking at this machine's ports, else nothing."""
        provider, _ = split_id(model_id)
        return self._base_url(model_id) if any(server.provider == provider for server in self._local) else ""

    def learn_window(self, model_id: str, limit: int) -> bool:
        """Go by the window that a refusal named if it is lower than what is known; whether it is (R-023).

        It is kept for later sessions, too, where no setting says how large the window is.
        """
        if not self.believe_window(model_id, limit):
            return False
        self._named.add(model_id)
        own = self._settings.models.get(model_id)
        if own is not None and own.context_window is not None:
            return True
        return self._learned.learn(model_id, self._base_url(model_id), limit)

    def believe_window(self, model_id: str, limit: int) -> bool:
        """Go by a lower window while this process lives; whether it is lower than what is known."""
        provider, _ = split_id(model_id)
        window = self.facts(model_id).context_window
        if provider == OFFLINE or limit <= 0 or (window is not None and limit >= window):
            return False
        self._believed[model_id] = limit
        return True

    def forget_window(self, model_id: str) -> int | None:
        """Drop what refusals of a model taught; return what was believed, `None` when that was nothing."""
        facts = self.facts(model_id)
        self._believed.pop(model_id, None)
        self._named.discard(model_id)
        if not self._has_no_address(split_id(model_id)[0]):
            self._learned.forget(model_id, self._base_url(model_id))
        return facts.context_window if facts.source == "learned" else None

    def is_named(self, model_id: str) -> bool:
        """Whether a refusal of this process named the window that is believed."""
        return model_id in self._named

    def learned_at(self, model_id: str) -> float | None:
        """Return when the kept window was learned (seconds since the epoch), `None` when none is kept."""
        learned = self._learned.get(model_id, self._base_url(model_id))
        return learned.learned if learned is not None else None

    @property
    def learned_path(self) -> Path:
        """The file of learned windows."""
        return self._learned.path

    def _base_url(self, model_id: str) -> str:
        provider = split_id(model_id)[0]
        return "" if self._has_no_address(provider) else self._endpoints.get(provider).base_url

    def answers_one_at_a_time(self, provider: str) -> bool:
        """Say whether a provider is a local server without a key: there one request waits for the other."""
        if self._has_no_address(provider):
            return False
        endpoint = self._endpoints.get(provider)
        return endpoint.is_local and not endpoint.has_key

    def has_web_search(self, model_id: str) -> bool:
        """Say whether requests to a model have its provider's web search, as the setting says.

        By itself only at the vendor's own address: what stands elsewhere may not have it, or may charge for it.
        """
        wanted = self._settings.tools.web_search
        provider, name = split_id(model_id)
        if self._has_no_address(provider) or wanted is False:
            return False
        endpoint = self._endpoints.get(provider)
        if wanted is True:
            return endpoint.kind in VENDOR_HOSTS
        return endpoint.is_vendors_own and not NO_WEB_SEARCH.match(name)

    def client(self, provider: str) -> ModelClient:
        """Return the client of a provider. Raises `ModelError` for an unknown one."""
        client = self._clients.get(provider)
        if client is None:
            client = self._clients[provider] = self._new_client(provider)
        return client

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()

    def _new_client(self, provider: str) -> ModelClient:
        if provider == OFFLINE:
            return OfflineClient()
        provided = self._provided.get(provider)
        if provided is not None and provided.client is not None:
            return provided.client
        endpoint = self._endpoints.get(provider)
        missing = self._endpoints.missing_key(endpoint)
        if missing is not None:
            raise missing
        supply = supply_for(endpoint, self._run_command, self._clock)
        return new_client(endpoint, self._load_blob, supply)

    def _load_blob(self, sha256: str) -> bytes:
        """Look the loader up at the moment of use: it is set when a session is open."""
        return self.load_blob(sha256)

    def _apply_settings(self, facts: ModelFacts) -> ModelFacts:
        own = self._settings.models.get(facts.id)
        if own is None:
            return facts
        if own.context_window is not None:
            facts = msgspec.structs.replace(facts, context_window=own.context_window, source="settings")
        if own.max_output_tokens is not None:
            facts = msgspec.structs.replace(facts, max_output_tokens=own.max_output_tokens, output_source="settings")
        if own.thinking is not None:
            facts = msgspec.structs.replace(facts, thinking=own.thinking)
        return msgspec.structs.replace(facts, quirks=_quirks(own))

    def _is_usable(self, model_id: str) -> bool:
        try:
            self.require(model_id)
        except ModelError:
            return False
        return True

    def _catalogued(self, endpoint: Endpoint) -> list[str]:
        provider = self.catalogue.find_provider(endpoint.base_url)
        return [model.id for model in provider.models if model.window] if provider else []

    def _list_path(self, endpoint: Endpoint) -> Path:
        return list_path(self._home, endpoint.provider, endpoint.base_url)

    def _stored_list(self, endpoint: Endpoint) -> ModelList | None:
        path = self._list_path(endpoint)
        key = str(path)
        if key not in self._lists:
            self._lists[key] = read_json(path, ModelList)
        return self._lists[key]

    async def _ask_list(self, endpoint: Endpoint) -> None:
        """Bring the stored list of a provider up to date if it is old and was not asked for in this process."""
        if endpoint.cloud:  # none of them lists what an account can use
            return
        path = self._list_path(endpoint)
        stored = self._stored_list(endpoint)
        max_age = LOCAL_LIST_MAX_AGE if endpoint.is_local else LIST_MAX_AGE
        if stored is not None and 0 <= self._clock() - stored.fetched < max_age:
            return
        if str(path) in self._asked:
            return
        self._asked.add(str(path))
        try:
            async with asyncio.timeout(LIST_SECONDS):
                models = await self.client(endpoint.provider).models()
        except ModelError as error:
            self._silent[endpoint.provider] = str(error)
            return
        except TimeoutError:
            self._silent[endpoint.provider] = f"no answer in {LIST_SECONDS:g} seconds"
            return
        except asyncio.CancelledError:
            self._asked.discard(str(path))
            raise
        fresh = ModelList(fetched=self._clock(), models=tuple(models))
        self._lists[str(path)] = fresh
        try:
            write_json(path, fresh)
        except OSError:
            return


def _quirks(own: ModelSettings) -> Quirks:
    for name, value in own.headers.items():
        KNOWN.learn(f"header {name}", value.removeprefix("Bearer "))
    return Quirks(
        one_call=not own.parallel_tools,
        system_role=own.system_role,
        output_limit_field=own.output_limit_field,
        temperature=own.temperature,
        top_p=own.top_p,
        body=tuple((name, json_access.encode(value).decode()) for name, value in own.body.items()),
        headers=tuple(own.headers.items()),
    )


def new_client(endpoint: Endpoint, load_blob: LoadBlob, supply: KeySupply | None = None) -> ModelClient:
    """Return a client of the endpoint's wire; `supply` has its key where that is not known yet."""
    if endpoint.cloud:
        from tenuto.model.access.cloud import CloudTransport

        transport = CloudTransport(endpoint, supply)
    elif supply is not None:
        from tenuto.model.access.carried import KeyedTransport

        transport = KeyedTransport(make_transport(endpoint), endpoint, supply)
    else:
        transport = make_transport(endpoint)
    match endpoint.kind:
        case "anthropic":
            from tenuto.model.anthropic.client import AnthropicClient

            return AnthropicClient(endpoint, load_blob, transport)
        case "openai":
            from tenuto.model.openai.responses import ResponsesClient

            return ResponsesClient(endpoint, load_blob, transport)
        case "openai-chat":
            from tenuto.model.openai.chat import ChatClient

            return ChatClient(endpoint, load_blob, transport)
        case "gemini":
            from tenuto.model.gemini.client import GeminiClient

            return GeminiClient(endpoint, load_blob, transport)


def split_id(model_id: str) -> tuple[str, str]:
    """Split `provider/name`. Raises `ModelError` when there is no such pair."""
    provider, slash, name = model_id.partition("/")
    if not (provider and slash and name):
        hint = "write it as provider/name, for example anthropic/claude-sonnet-5-5; /model lists the models"
        raise ModelError("not_found", f"“{model_id}” is not a model", hint=hint)
    return provider, name


def _version(name: str) -> tuple[tuple[int, ...], int]:
    """Return what orders the names of a family: the version, then the shorter name; a date in it is no version."""
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", name)
    return tuple(int(number) for number in numbers), -len(name)


def _lowered(facts: ModelFacts, window: int | None) -> ModelFacts:
    """Return the facts with a window that a refusal taught, where it is lower than the known one."""
    if window is None or (facts.context_window is not None and window >= facts.context_window):
        return facts
    return msgspec.structs.replace(facts, context_window=window, source="learned")


def _no_blob(sha256: str) -> bytes:
    raise FileNotFoundError(sha256)
