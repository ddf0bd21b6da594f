"""Loading a strategy by its name, `module:ClassName`, and giving its constructor what it asks for (seed 004)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, cast, get_args, get_type_hints

from tenuto.compaction.errors import StrategyError
from tenuto.protocol.compaction import CompactionStrategy


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
        inspect.signature(method).bind(object())
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
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"tenuto_strategy_{name}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are resolved by way of it
    spec.loader.exec_module(module)
    return module


def _positional_parameters(found: type[Any], name: str) -> list[tuple[inspect.Parameter, object]]:
    """Return the constructor's positional parameters with their annotations resolved."""
    if found.__init__ is object.__init__:
        return []
    parameters = list(inspect.signature(found.__init__).parameters.values())[1:]
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
