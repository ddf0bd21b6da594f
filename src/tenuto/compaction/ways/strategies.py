"""Strategies besides the ladder (seed 004): the built-in ones, those that are loaded by name, and supplied summaries.

Each built-in one does one thing and is of use as a part of others. A strategy is loaded by `module:ClassName`, and its
constructor is given what it asks for. To a summary that an extension wrote (seed 003), frame, lists and pins are added
as usual.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, cast, get_args, get_type_hints

import msgspec

from tenuto.compaction.data.files import with_file_lists
from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.summary.digest import list_room
from tenuto.compaction.summary.view import build_replacement
from tenuto.compaction.ways.environment import BoundContext, accept
from tenuto.compaction.ways.ladder import on_owner_loop, remote_rungs, run_ladder
from tenuto.compaction.ways.remote import choose_remote
from tenuto.compaction.ways.rungs import build_digest, hide, plan_or_shorten, serialised_rungs
from tenuto.protocol.compaction import (
    CompactionContext,
    CompactionOutcome,
    CompactionStrategy,
    NothingLeftError,
    RungError,
    StrategyError,
)
from tenuto.protocol.hooks import SuppliedCompaction
from tenuto.protocol.message import MESSAGE_TYPES, Message
from tenuto.signatures import signature_of


class LLMSummaryCompaction:
    """A model's summary of the older part; the digest where no model can write one."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        return await on_owner_loop(ctx, _summarise)


async def _summarise(ctx: BoundContext) -> CompactionOutcome:
    plan = plan_or_shorten(ctx)
    return plan if isinstance(plan, CompactionOutcome) else await run_ladder(ctx, plan, (serialised_rungs,))


class ToolResultHidingCompaction:
    """Old tool results become placeholders; `None` when none is left to hide."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome | None:
        """Return the outcome, or `None`."""
        return await on_owner_loop(ctx, _hide)


async def _hide(ctx: BoundContext) -> CompactionOutcome | None:
    return hide(ctx)


class HidingThenSummaryCompaction:
    """Hide old tool results; when there are none left, summarise."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        hidden = await ToolResultHidingCompaction().compact(ctx)
        return hidden if hidden is not None else await LLMSummaryCompaction().compact(ctx)


class RemoteCompaction:
    """The provider's own compaction, asked for within a normal request unless the model's settings say otherwise."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome; a summary made here where the provider has none. Raises `RungError`."""
        return await on_owner_loop(ctx, _compact_remotely)


async def _compact_remotely(ctx: BoundContext) -> CompactionOutcome:
    plan = plan_or_shorten(ctx)
    if isinstance(plan, CompactionOutcome):
        return plan
    return await run_ladder(choose_remote(ctx), plan, (remote_rungs, serialised_rungs))


class DigestCompaction:
    """The older part condensed from the session's data, without any model."""

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome:
        """Return the outcome. Raises `RungError` when nothing can make the context smaller."""
        return await on_owner_loop(ctx, _condense)


async def _condense(ctx: BoundContext) -> CompactionOutcome:
    plan = ctx.environment.plan(manual=ctx.is_manual)
    if isinstance(plan, NothingToCompact):
        raise NothingLeftError(plan.reason)
    return build_digest(ctx)


def load_strategy(name: str, dependencies: Mapping[type, object], folder: Path | None = None) -> CompactionStrategy:
    """Return an instance of the class at `module:ClassName`; the module may be a file in `folder`.

    Positional parameters are filled by their annotation from `dependencies`; keyword-only ones keep their defaults; a
    class without an own `__init__` is called without arguments. Raises `StrategyError` with what to change.
    """
    found = _find_class(name, folder)
    arguments = [_resolve(name, *parameter, dependencies) for parameter in _positional_parameters(found, name)]
    try:
        strategy = found(*arguments)
    except Exception as error:  # anything can happen in a class of somebody else; it ends here as one line
        raise StrategyError(f"compaction.strategy {name} cannot be built: {type(error).__name__}: {error}") from error
    return check_strategy(strategy, f"compaction.strategy {name}")


def check_strategy(candidate: object, name: str) -> CompactionStrategy:
    """Return the candidate if it has the shape of a strategy. Raises `StrategyError`."""
    method = getattr(candidate, "compact", None)
    if not inspect.iscoroutinefunction(method):
        raise StrategyError(f"{name} is no strategy: it has no `async def compact(self, ctx)`")
    try:
        signature_of(method).bind(object())
    except TypeError as error:
        raise StrategyError(f"{name} is no strategy: `compact` has to take one argument, the context") from error
    return cast("CompactionStrategy", candidate)


def _find_class(name: str, folder: Path | None) -> type[Any]:
    module_name, separator, class_name = name.partition(":")
    if not separator or not module_name or not class_name.isidentifier():
        raise StrategyError(f"compaction.strategy {name!r} has to be written as module:ClassName")
    try:
        module = _import(module_name, folder)
    except Exception as error:  # a module of somebody else can raise anything while it is imported
        raise StrategyError(
            f"compaction.strategy {name}: {module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    found = getattr(module, class_name, None)
    if not inspect.isclass(found):
        raise StrategyError(f"compaction.strategy {name}: {module_name} has no class {class_name}")
    return found


def _import(name: str, folder: Path | None) -> ModuleType:
    """Import a module: a file of the user's own folder, else whatever Python finds."""
    file = folder / f"{name}.py" if folder is not None else None
    if file is None or not file.is_file():
        return import_module(name)
    spec = util.spec_from_file_location(f"tenuto_strategy_{name}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are resolved by way of it
    spec.loader.exec_module(module)
    return module


def _positional_parameters(found: type[Any], name: str) -> list[tuple[inspect.Parameter, object]]:
    """Return the constructor's positional parameters with their annotations resolved."""
    if found.__init__ is object.__init__:
        return []
    parameters = list(signature_of(found.__init__).parameters.values())[1:]
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    try:
        hints = get_type_hints(found.__init__)
    except Exception as error:  # an annotation can name anything
        raise StrategyError(
            f"compaction.strategy {name}: the annotations of __init__ cannot be read: {error}"
        ) from error
    return [(one, hints.get(one.name)) for one in positional]


def _resolve(
    name: str, parameter: inspect.Parameter, annotation: object, dependencies: Mapping[type, object]
) -> object:
    for wanted in (annotation, *get_args(annotation)):
        if isinstance(wanted, type) and wanted is not NoneType and wanted in dependencies:
            return dependencies[wanted]
    if parameter.default is not parameter.empty:
        return parameter.default
    known = ", ".join(sorted(kind.__name__ for kind in dependencies))
    raise StrategyError(
        f"compaction.strategy {name}: the parameter {parameter.name!r} cannot be filled; "
        f"annotate it with one of {known}, or make it keyword-only with a default"
    )


def take_supplied(ctx: BoundContext, supplied: SuppliedCompaction, extension: str) -> CompactionOutcome:
    """Return the outcome of a supplied compaction. Raises `RungError` with why it must not be written."""
    environment = ctx.environment
    if not supplied.summary.strip():
        raise RungError("its summary is empty")
    if supplied.first_kept_index < 1:
        raise RungError(f"first_kept_index is {supplied.first_kept_index}, which is no entry")
    plan = environment.plan(manual=ctx.is_manual, first_kept=supplied.first_kept_index)
    if isinstance(plan, NothingToCompact):
        raise RungError(plan.reason)
    lists = list_room(plan, environment.session_data)
    summary = with_file_lists(supplied.summary, plan.file_operations, lists)
    outcome = CompactionOutcome(
        summary=summary,
        replacement=build_replacement(plan, summary, environment.session_data, environment.prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=msgspec.structs.replace(plan.file_operations.details(), extension=supplied.details),
        rung="extension",
        from_extension=extension,
    )
    accept(ctx, outcome)
    return outcome


_UNFIT = (msgspec.MsgspecError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What encoding and decoding of anything at all can raise."""
_INSTEAD = {
    "replacement": "a tuple of messages, as `Message(role=…, content=…)` makes them",
    "first_kept_index": "the `seq` of the first message that stays, or 0 where only `edits` apply",
    "edits": "a tuple of `ViewEdit`",
    "summary": "a text",
    "details": "`CompactionDetails`, with plain JSON as its `extension`, or None",
    "usage": "a `Usage` or None",
    "rung": "a short text",
    "provider_items": "`ProviderItems` or None",
    "from_extension": "a text",
    "notes": "a tuple of texts",
}
"""What to write into each field of an outcome."""


def convert_output(output: object, history: Collection[Message]) -> Sequence[Message] | CompactionOutcome | None:
    """Return what a strategy returned as plain data; messages of `history` are taken over as they are.

    Raises `StrategyError` that names what does not fit and what to write instead.
    """
    if output is None:
        return None
    if isinstance(output, CompactionOutcome):
        return _convert_outcome(output)
    if isinstance(output, Sequence) and not isinstance(output, str | bytes | bytearray):
        known = {id(message) for message in history}
        items = list(cast("Sequence[object]", output))
        return [_convert_message(place, item, known) for place, item in enumerate(items)]
    raise StrategyError(f"it returned {type(output).__name__}, and not messages, an outcome or None")


def _convert_outcome(outcome: CompactionOutcome) -> CompactionOutcome:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(CompactionOutcome):
        try:
            values[field.name] = _plain(getattr(outcome, field.name), field.type)
        except _UNFIT as error:
            raise StrategyError(
                f"its outcome cannot be used: {field.name} has to be {_INSTEAD[field.name]} ({_reason(error)})"
            ) from error
    # A message that stands before the kept tail is no entry any more, and a `seq` would say that it is.
    values["replacement"] = tuple(msgspec.structs.replace(message, seq=0, ts=0.0) for message in values["replacement"])
    return CompactionOutcome(**values)


def _convert_message(place: int, item: object, known: Collection[int]) -> Message:
    if id(item) in known:
        return cast("Message", item)
    if not isinstance(item, MESSAGE_TYPES):
        raise StrategyError(f"a strategy returns messages, and not {type(item).__name__} (at place {place})")
    try:
        return cast("Message", _plain(item, Message))
    except _UNFIT as error:
        raise StrategyError(
            f"the message at place {place} that it returned cannot be used ({_reason(error)}); "
            "make new ones with Message(role=…, content=…)"
        ) from error


def _plain(value: object, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
