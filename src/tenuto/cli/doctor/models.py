"""Checks of models: keys, servers, the one that a session begins with, the catalogue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.cli.parsing import bare_url
from tenuto.core.errors import UsageError
from tenuto.core.state.windows import split_model
from tenuto.model.access.supply import strangeness
from tenuto.model.catalogue.refresh import MAX_AGE, last_attempt
from tenuto.model.catalogue.snapshot import FETCHED
from tenuto.model.endpoint import Endpoint
from tenuto.model.endpoints import (
    USUAL_PORTS,
    ModelList,
    find_local_servers,
    list_path,
)
from tenuto.model.json_files import read_json
from tenuto.model.registry import OFFLINE
from tenuto.protocol.model import ModelError, ModelFacts
from tenuto.text.figures import describe_origin, format_prices, format_seconds, plural

ASK_SECONDS = 15.0
"""Seconds that a server has for its list of models."""
OLD_CATALOGUE = 4 * MAX_AGE
"""Seconds after which it is said that nobody has fetched a newer one."""
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
CONNECT = "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server; until then the offline model answers"


def _endpoints(place: Surroundings) -> Iterator[Endpoint | Row]:
    for name in place.endpoints.names():
        try:
            yield place.endpoints.get(name)
        except ModelError as error:
            yield Row(f"server {name}", error.text, "problem", error.hint)


async def check_keys(place: Surroundings) -> list[Row]:
    """Tell where the key of each provider comes from, and never the key."""
    endpoints = [one for one in _endpoints(place) if isinstance(one, Endpoint)]
    sources = {one.provider: place.endpoints.source_of_key(one) for one in endpoints}
    details = tuple(f"{name}: {said or 'none'}" for name, said in sources.items())
    rows = [
        Row("keys", f"the key of {one.provider} {strange}", "problem", f"look at {sources[one.provider]}")
        for one in endpoints
        if (strange := strangeness(one.key))
    ]
    there = sum(bool(said) for said in sources.values())
    if not there:
        return [*rows, Row("keys", "none", details=details)]
    return [*rows, Row("keys", f"{there} of {plural(len(sources), 'provider')} can be used", details=details)]


async def check_servers(place: Surroundings) -> list[Row]:
    """Tell the address of each provider that can be used, and what is stored of its models; online, ask it."""
    rows = [one for one in _endpoints(place) if isinstance(one, Row)]
    usable = [
        one for one in _endpoints(place) if isinstance(one, Endpoint) and place.endpoints.missing_key(one) is None
    ]
    rows += await asyncio.gather(*(_server(place, one) for one in usable))
    proxies = [
        f"{name}={', '.join(map(bare_url, value.split(','))) if name != 'NO_PROXY' else value}"
        for name in PROXIES
        if (value := place.environ.get(name) or place.environ.get(name.lower()))
    ]
    return [*rows, *([Row("proxy", "; ".join(proxies))] if proxies else [])]


async def _server(place: Surroundings, endpoint: Endpoint) -> Row:
    name, address = f"server {endpoint.provider}", bare_url(endpoint.base_url)
    stored = read_json(list_path(place.home, endpoint.provider, endpoint.base_url), ModelList)
    known = f"{plural(len(stored.models), 'model')} listed, {place.age(stored.fetched)}" if stored else "no list stored"
    if place.online:
        return await _ask(place, endpoint, name, address)
    if endpoint.key and endpoint.base_url.startswith("http://") and not endpoint.is_local:
        return Row(name, f"{address}; {known}", "note", "use https: the key goes over the net for all to read")
    return Row(name, f"{address}; {known}")


async def _ask(place: Surroundings, endpoint: Endpoint, name: str, address: str) -> Row:
    began = time.monotonic()
    try:
        async with asyncio.timeout(ASK_SECONDS):
            models = await place.models.client(endpoint.provider).models()
    except ModelError as error:
        do = error.hint or "check the address, the key and the connection"
        return Row(name, f"{address}: {_bare(endpoint, error.text)}", "problem", _bare(endpoint, do))
    except TimeoutError:
        return Row(
            name, f"{address}: no answer in {ASK_SECONDS:g} s", "problem", "check the address and the connection"
        )
    return Row(name, f"{address}; {plural(len(models), 'model')}, in {format_seconds(time.monotonic() - began)}")


def _bare(endpoint: Endpoint, text: str) -> str:
    """Return an error's text without what is secret: some servers say what they were sent."""
    text = text.replace(endpoint.base_url, bare_url(endpoint.base_url))
    for secret in filter(None, (endpoint.key, *endpoint.headers.values())):
        text = text.replace(secret, "(secret)")
    return text


async def check_local_servers(place: Surroundings) -> list[Row]:
    """Tell which servers answer on this machine: their ports are looked for at a start as well."""
    del place
    servers = await find_local_servers()
    if not servers:
        return [Row("local", f"no server on {', '.join(f'{port} ({name})' for name, port in USUAL_PORTS)}")]
    found = [f"{one.provider} at {one.base_url}: {plural(len(one.models), 'model')}" for one in servers]
    return [Row("local", "; ".join(found))]


async def check_model(place: Surroundings) -> list[Row]:
    """Tell the model that a session begins with, its numbers, and where each comes from."""
    rows = [await _model(place, "model", place.settings.model or await place.models.find_default_model(), "model")]
    if place.settings.compaction.model:
        key = "compaction.model"
        rows.append(await _model(place, "summaries", place.settings.compaction.model, key))
    return rows


async def _model(place: Surroundings, name: str, text: str, key: str) -> Row:
    by = place.where(tuple(key.split(".")))
    said = f"{text} ({by})" if by else text
    try:
        model, _ = split_model(text)
        place.models.require(model)
        facts = place.models.facts(model)
    except UsageError as error:
        return Row(name, f"{said} cannot be used", "problem", str(error))
    except ModelError as error:
        return Row(name, f"{said} cannot be used: {error.text}", "problem", error.hint)
    details = tuple(_numbers(facts))
    if facts.provider == OFFLINE:
        return Row(name, f"{said}, built in", *(("ok", "") if by else ("note", CONNECT)), details)
    other = place.models.listed_instead(model)
    if other:
        return Row(name, f"{said} is not in its provider's list", "note", f"choose another one, as {other}", details)
    if facts.context_window is None:
        do = f'set context_window under [models."{model}"] in {place.short(place.home / "settings.toml")}'
        return Row(name, said, "note", do, details)
    return Row(name, said, details=details)


def _numbers(facts: ModelFacts) -> Iterator[str]:
    numbers = (("window", facts.context_window, facts.source), ("output", facts.max_output_tokens, facts.output_source))
    for name, tokens, source in numbers:
        origin = describe_origin(source, facts.assumed_from)
        yield f"{name} {tokens:,} tokens{f' ({origin})' if origin else ''}" if tokens else f"{name} not known"
    price = format_prices(facts.input_price, facts.output_price)
    origin = describe_origin(facts.price_source, facts.assumed_from)
    yield f"price {price}{f' ({origin})' if origin else ''}" if price else "price not known"


async def check_catalogue(place: Surroundings) -> list[Row]:
    """Tell how old the catalogue of windows and prices is."""
    catalogue = place.models.catalogue
    age = place.age(catalogue.made)
    kind = "fetched" if catalogue.is_fetched else "came with the program"
    found, refresh = f"{age}, {kind}", "tenuto models refresh fetches the newest"
    if catalogue.problem:
        do = f"{refresh}; or delete {place.short(place.home / FETCHED)}"
        return [Row("catalogue", f"{found}; the fetched one is not used: {catalogue.problem}", "note", do)]
    attempt = last_attempt(place.home)
    if attempt is not None and attempt.problem:
        return [Row("catalogue", f"{found}; the last attempt to fetch one failed: {attempt.problem}", "note", refresh)]
    is_old = place.now - catalogue.made > OLD_CATALOGUE
    return [Row("catalogue", found, "note" if is_old else "ok", refresh if is_old else "")]
