"""Imports of libraries that no start needs, left out or put off. Every trick on `sys.modules` is one of these three.

Each caller says how many milliseconds it saves: a trick that saves less than 3 is not worth its risk. Measured in fresh
processes, with and without it in turn, the minimum of each (CPython 3.11, two cores).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType, ModuleType


def import_without(name: str, unwanted: str) -> ModuleType:
    """Import a module as if `unwanted`, which it can do without, were not installed. What is there already stays."""
    from importlib import import_module

    if name in sys.modules or unwanted in sys.modules:
        return import_module(name)
    sys.modules[unwanted] = None  # pyright: ignore[reportArgumentType] - makes its import fail
    try:
        return import_module(name)
    finally:
        del sys.modules[unwanted]


def replace_module(name: str, classes: Iterable[str]) -> None:
    """Let a module that is never used be one of empty classes. One that is there already stays."""
    module = ModuleType(name)
    for each in classes:
        setattr(module, each, type(each, (), {}))
    sys.modules.setdefault(name, module)


class _Nothing:
    """The class of a module that is not there yet: it has no instances."""


class LateModule(ModuleType):
    """Stands in for a module; whatever is asked of it is asked of the real one, which is imported then.

    `kinds` are classes of it of which others only ask whether something is one: before the import nothing can be.
    """

    kinds: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what the import machinery asks
            raise AttributeError(name)
        if name in self.kinds and isinstance(sys.modules.get(self.__name__, self), LateModule):
            return _Nothing
        return getattr(_import_real(self.__name__), name)


@contextmanager
def late_modules(
    functions: Mapping[str, tuple[str, ...]], kinds: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> Generator[None]:
    """Let the named modules be stand-ins for what is imported inside, and for nothing else.

    `functions` has, by module, what is imported from it by name and called only; classes that others are derived from,
    or values, cannot wait. `kinds` has classes of which they only ask whether something is one. A module that is there
    already stays.
    """
    for name, called in functions.items():
        if name not in sys.modules:
            module = LateModule(name)
            module.kinds = kinds.get(name, ())
            for function in called:
                setattr(module, function, _late_function(name, function))
            sys.modules[name] = module
    try:
        yield
    finally:
        for name in functions:
            module = sys.modules.get(name)
            if isinstance(module, LateModule):
                del sys.modules[name]
                package, _, child = name.rpartition(".")
                if package in sys.modules:  # an import would have put it there
                    setattr(sys.modules[package], child, module)


def _late_function(module: str, name: str) -> Callable[..., object]:
    def call(*arguments: object, **named: object) -> object:
        return getattr(_import_real(module), name)(*arguments, **named)

    return call


def _import_real(name: str) -> ModuleType:
    from importlib import import_module

    if isinstance(sys.modules.get(name), LateModule):
        del sys.modules[name]
    return import_module(name)
