"""`tenuto models`: what can be used, with its numbers and where each comes from; and a newer catalogue."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tenuto.cli.parsing import Parser, complain, parse, say, say_json, settings_for
from tenuto.config.settings import Settings
from tenuto.core.errors import UsageError
from tenuto.core.models import open_models
from tenuto.core.state.extensions import Extensions
from tenuto.core.state.windows import split_model
from tenuto.exit_codes import FAILED, OK
from tenuto.model.catalogue.lookup import Catalogue
from tenuto.model.catalogue.refresh import last_attempt, refresh
from tenuto.model.catalogue.snapshot import FETCHED, CatalogueError
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.model import ModelError, ModelFacts
from tenuto.text.figures import ORIGINS
from tenuto.tool.run.registry import ToolRegistry

HEADINGS = ("model", "window", "", "output", "", "$ per million in / out", "", "assumed from")
RIGHT = {1, 3, 5}
"""Columns of numbers."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto models`."""
    origins = ", ".join(source if words == source else f"{source} ({words})" for source, words in ORIGINS.items())
    parser = Parser(
        prog="tenuto models",
        description="List the models that can be used: of every provider with a key, of local servers, of the "
        f"settings, and offline. Behind each number stands where it comes from: {origins}. refresh fetches the newest "
        "catalogue of windows and prices.",
    )
    parser.add_argument("what", nargs="?", choices=("list", "refresh"), default="list", help="default: list")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    return parser


def run_models(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto models …`; returns the exit code: 0 done, 1 the catalogue cannot be had, 2 bad usage."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    settings = settings_for(home, None, environ)
    if parsed.what == "refresh":
        return _refresh(home, settings.catalogue.url, as_json=parsed.json)
    return _list(settings, home, environ, as_json=parsed.json)


def _refresh(home: Path, url: str, *, as_json: bool) -> int:
    try:
        asyncio.run(refresh(home, url, time.time()))
    except CatalogueError as error:
        return complain(f"the catalogue stays as it is: {error}", FAILED)
    catalogue = Catalogue(home / FETCHED)
    providers = list(catalogue.providers())
    models = sum(len(provider.models) for provider in providers)
    if as_json:
        say_json({"models": models, "providers": len(providers), **_describe(catalogue, home)})
    elif catalogue.problem:
        return complain(f"the catalogue was fetched and is not used: {catalogue.problem}", FAILED)
    else:
        say(f"Fetched: {models:,} models of {len(providers)} providers, in {home / FETCHED}")
    return OK


def _list(settings: Settings, home: Path, environ: Mapping[str, str], *, as_json: bool) -> int:
    registry = open_models(settings, home, environ)
    models = asyncio.run(_available(settings, registry, home))
    about = _describe(registry.catalogue, home)
    if as_json:
        say_json({"models": [_plain(facts) for facts in models], "catalogue": about})
        return OK
    for line in _table([HEADINGS, *(_row(facts) for facts in models)]):
        say(line)
    say("")
    kind = "fetched" if about["fetched"] else "came with the program"
    say(f"Catalogue of {about['made']} ({kind}); tenuto models refresh fetches the newest.")
    if about["ignored"]:
        say(f"A fetched catalogue in {home / FETCHED} is not used: {about['ignored']}.")
    if about["problem"]:
        say(f"The last attempt to fetch one failed on {about['tried']}: {about['problem']}")
    return OK


async def _available(settings: Settings, registry: ModelRegistry, home: Path) -> list[ModelFacts]:
    """Return what can be used, first what a session would begin with: not every gateway lists its models."""
    models: list[ModelFacts] = []
    extensions = Extensions(home, settings.extensions, ToolRegistry(), registry)
    try:
        await extensions.host(Path.cwd())
        for problem in extensions.early:
            complain(problem)
        models = await registry.available()
        first, _ = split_model(settings.model or await registry.find_default_model())
        registry.require(first)
        await registry.require_name(first)
        return [registry.facts(first), *(facts for facts in models if facts.id != first)]
    except (ModelError, UsageError) as error:
        complain(f"the model of the settings cannot be used: {error}")
        return models
    finally:
        await extensions.close()
        await registry.close()


def _describe(catalogue: Catalogue, home: Path) -> dict[str, object]:
    """Return how old the catalogue is, and what went wrong with newer ones."""
    attempt = last_attempt(home)
    return {
        "made": _day(catalogue.made),
        "fetched": catalogue.is_fetched,
        "ignored": catalogue.problem,
        "tried": _day(attempt.tried) if attempt else "",
        "problem": attempt.problem if attempt else "",
    }


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _plain(facts: ModelFacts) -> dict[str, object]:
    fields = msgspec.to_builtins(facts)
    del fields["quirks"]  # they may hold keys, and tenuto config shows what is set
    return {"model": facts.id, **fields}


def _row(facts: ModelFacts) -> tuple[str, ...]:
    has_price = facts.input_price is not None and facts.output_price is not None
    return (
        facts.id,
        f"{facts.context_window:,}" if facts.context_window else "?",
        facts.source if facts.context_window else "",
        f"{facts.max_output_tokens:,}" if facts.max_output_tokens else "?",
        facts.output_source if facts.max_output_tokens else "",
        f"{facts.input_price:g} / {facts.output_price:g}" if has_price else "?",
        facts.price_source if has_price else "",
        facts.assumed_from,
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    if not any(row[-1] for row in rows[1:]):  # most lists fit a terminal without it
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if column in RIGHT else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
