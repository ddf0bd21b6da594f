"""Finding what is known of a model: by the address that serves it, else by its name (finding B6).

A name is looked for with the provider of the address, then with the vendor of the protocol, then with all others; last
comes the newest older version of the same family. A server on this machine or in the local network is asked itself:
what it runs under a name, and with which window, only it can say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from tenuto.model.catalogue import names, snapshot
from tenuto.model.catalogue.snapshot import (
    HOSTS,
    CatalogueError,
    CatalogueModel,
    CatalogueProvider,
    Snapshot,
    UnreadProvider,
)
from tenuto.model.endpoint import Endpoint, ProviderKind
from tenuto.protocol.model import ModelFacts

VENDORS: Mapping[ProviderKind, str] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-chat": "openai",
    "gemini": "google",
}
"""Whose models a protocol was made for."""


class Match(msgspec.Struct, frozen=True):
    """A model that a name means. `has_price`: its price is that of the name, as far as anybody knows."""

    model: CatalogueModel
    source: Literal["catalogue", "name", "nearest"]
    has_price: bool


class Found(msgspec.Struct, frozen=True):
    """A model of one provider that a name means: as it is written there, and whether as the same offer."""

    model: CatalogueModel
    as_written: bool
    same_offer: bool


class Catalogue:
    """The newest catalogue there is: the file `fetched`, or the one that came with the program.

    Files are read when something is asked for, and of them only the providers that are needed.
    """

    def __init__(self, fetched: Path) -> None:
        self._fetched = fetched
        self._shelves: dict[str, Shelf] = {}
        self._found: dict[tuple[str, ProviderKind, str], tuple[Match, ...]] = {}
        self.problem = ""
        """Why a fetched catalogue is not used, in the middle of a sentence; known when one was asked for something."""

    @property
    def made(self) -> int:
        """When it was made, in seconds since the epoch; 0 when there is none."""
        return self._content.made

    @property
    def is_fetched(self) -> bool:
        """Whether it is a fetched one."""
        return self._content is not _packaged()

    def providers(self) -> Iterator[CatalogueProvider]:
        """Yield all providers, the makers of models before those who serve others' models."""
        yield from (self._shelf(name).provider for name in self._unread)

    def find_provider(self, base_url: str) -> CatalogueProvider | None:
        """Return the provider that serves a base URL."""
        name = self._provider_at(base_url)
        return self._shelf(name).provider if name else None

    def has_name(self, name: str) -> bool:
        """Whether some provider has a model of just this name."""
        lower = name.lower()
        found = (self._shelf(provider) for provider, unread in self._unread.items() if unread.mentions(lower))
        return any(model.id.lower() == lower for shelf in found for model in shelf.provider.models)

    def complete(self, facts: ModelFacts, endpoint: Endpoint) -> ModelFacts:
        """Return the facts with what the catalogue adds; what the facts say already stays."""
        if None not in (facts.context_window, facts.max_output_tokens, facts.input_price):
            return facts
        asked = (endpoint.base_url, endpoint.kind, facts.name)
        if asked not in self._found:
            self._found[asked] = tuple(self._matches(endpoint, facts.name))
        return _filled(facts, self._found[asked])

    def _matches(self, endpoint: Endpoint, name: str) -> Iterator[Match]:
        """Yield what a name means, the likeliest first, until a window is known."""
        if endpoint.is_local:
            return
        own = self._provider_at(endpoint.base_url)
        forms = names.forms(name)
        order = self._order(endpoint, own)
        has_match = False
        for provider in order:
            if provider in HOSTS and provider != own and not self._mentions(provider, forms):
                continue
            found = self._shelf(provider).find(forms)
            if found is None:
                continue
            is_served = provider == own and (found.same_offer or found.as_written)
            yield Match(found.model, "catalogue" if is_served else "name", is_served or found.same_offer)
            has_match = True
            if found.model.window is not None:
                return
        nearest = next(filter(None, (self._find_older(provider, forms) for provider in order)), None)
        if nearest is not None:
            yield Match(nearest, "nearest", not has_match)

    def _find_older(self, provider: str, forms: tuple[names.Form, ...]) -> CatalogueModel | None:
        family, numbers = names.version(forms[-1].text) if forms else ((), ())
        if not (family and numbers and self._unread[provider].mentions(*family)):
            return None
        return self._shelf(provider).find_older(family, numbers)

    def _order(self, endpoint: Endpoint, own: str) -> list[str]:
        """Return the providers with which a name is looked for."""
        return [name for name in dict.fromkeys([own, VENDORS[endpoint.kind], *self._unread]) if name in self._unread]

    def _mentions(self, provider: str, forms: tuple[names.Form, ...]) -> bool:
        return any(self._unread[provider].mentions(form.text) for form in forms)

    def _provider_at(self, base_url: str) -> str:
        return next((name for name, found in self._unread.items() if re.match(found.api_pattern, base_url)), "")

    def _shelf(self, provider: str) -> Shelf:
        if provider not in self._shelves:
            self._shelves[provider] = Shelf(self._unread[provider].read())
        return self._shelves[provider]

    @cached_property
    def _unread(self) -> dict[str, UnreadProvider]:
        return {provider.id: provider for provider in self._content.providers}

    @cached_property
    def _content(self) -> Snapshot:
        return self._newer() or _packaged()

    def _newer(self) -> Snapshot | None:
        """Return the fetched catalogue if it can be used and is not older than the one of the program."""
        try:
            fetched, packaged = snapshot.read_header(self._fetched), snapshot.read_header(snapshot.PACKAGED)
            if fetched is None:
                return None
            if packaged is not None and fetched.made < packaged.made:
                raise CatalogueError("it is older than the one that came with the program")
            return snapshot.read(self._fetched)
        except CatalogueError as error:
            self.problem = str(error)
            return None


@cache
def _packaged() -> Snapshot:
    try:
        return snapshot.read(snapshot.PACKAGED)
    except CatalogueError:
        return Snapshot(made=0, providers=())


class Shelf:
    """One provider's models, by name and by family."""

    def __init__(self, provider: CatalogueProvider) -> None:
        self.provider = provider

    def find(self, forms: tuple[names.Form, ...]) -> Found | None:
        """Return the model that a name means. A clause covers beginnings too, so it says nothing of an offer."""
        for form in forms:
            as_written = form is forms[0]
            model = self._by_name.get(form.text) or self._by_name.get(names.key(form.text))
            if model is not None:
                return Found(model, as_written, form.same_offer)
            model = next((model for model in self._covering if matches(model.match, form.text)), None)
            if model is not None:
                return Found(model, as_written, form.same_offer and not names.names_offer(form.text))
        return None

    def find_older(self, family: tuple[str, ...], numbers: tuple[int, ...]) -> CatalogueModel | None:
        """Return the newest model of a family with a known window that is not newer than the version."""
        older = [(version, model) for version, model in self._families.get(family, ()) if version <= numbers]
        return max(older, key=lambda entry: entry[0])[1] if older else None

    @cached_property
    def _covering(self) -> tuple[CatalogueModel, ...]:
        """Models whose clauses mean more than the names in them."""
        return tuple(model for model in self.provider.models if _equals(model.match) is None)

    @cached_property
    def _by_name(self) -> dict[str, CatalogueModel]:
        """Models by their names in lower case; a name as it stands comes before what can be read out of another."""
        models = self.provider.models
        found = {model.id.lower(): model for model in models}
        for model in models:
            for name in _equals(model.match) or ():
                found.setdefault(name.lower(), model)
        for name, model in list(found.items()):
            for shorter in names.without_prefixes(name) if "/" in name or "." in name else ():
                found.setdefault(shorter, model)
                found.setdefault(names.key(shorter), model)
        return found

    @cached_property
    def _families(self) -> dict[tuple[str, ...], list[tuple[tuple[int, ...], CatalogueModel]]]:
        found: dict[tuple[str, ...], list[tuple[tuple[int, ...], CatalogueModel]]] = {}
        for model in self.provider.models:
            family, numbers = names.version(names.core(model.id))
            if model.window is not None and numbers:
                found.setdefault(family, []).append((numbers, model))
        return found


def _equals(clause: list[Any]) -> list[str] | None:
    """Return the names of a clause that lists names and nothing else."""
    match clause:
        case ["equals", str(name)]:
            return [name]
        case ["any", inner] if all(one[:1] == ["equals"] for one in inner):
            return [one[1] for one in inner]
        case _:
            return None


def matches(clause: list[Any], name: str) -> bool:
    """Whether a clause of the catalogue covers a name in lower case."""
    match clause:
        case ["any", inner]:
            return any(matches(one, name) for one in inner)
        case ["all", inner]:
            return all(matches(one, name) for one in inner)
        case ["regex", str(pattern)]:
            return re.search(pattern, name) is not None
        case [kind, str(text)]:
            text = text.lower()
            return {
                "equals": name == text,
                "starts": name.startswith(text),
                "ends": name.endswith(text),
                "contains": text in name,
            }.get(kind, False)
        case _:
            return False


def _filled(facts: ModelFacts, found: tuple[Match, ...]) -> ModelFacts:
    """Return the facts with the numbers that they lack.

    Window and output limit are those of the first match that has them, prices those of the first match with one.
    """
    sized = next((match for match in found if match.model.window is not None), None)
    if facts.context_window is None and sized is not None:
        facts = msgspec.structs.replace(
            facts, context_window=sized.model.window, source=sized.source, assumed_from=_assumed(sized)
        )
    limited = next((match for match in found if match.model.max_output is not None), None)
    if facts.max_output_tokens is None and limited is not None:
        facts = msgspec.structs.replace(
            facts,
            max_output_tokens=limited.model.max_output,
            output_source=limited.source,
            assumed_from=facts.assumed_from or _assumed(limited),
        )
    priced = found[0] if found and found[0].has_price else None
    if facts.input_price is None and priced is not None and priced.model.input is not None:
        facts = msgspec.structs.replace(
            facts,
            input_price=priced.model.input,
            output_price=priced.model.output,
            cache_read_price=priced.model.cache_read,
            cache_write_price=priced.model.cache_write,
            price_source=priced.source,
            assumed_from=facts.assumed_from or _assumed(priced),
        )
    return facts


def _assumed(match: Match) -> str:
    return "" if match.source == "catalogue" else match.model.id
