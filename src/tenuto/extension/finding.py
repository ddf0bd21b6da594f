"""Where extensions come from: packages, files and folders. Finding runs nothing; `Source.load` imports."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from tenuto.config.settings import ExtensionSettings

ENTRY_POINT_GROUP = "tenuto.extensions"
FOLDER = "extensions"

Setup = Callable[[object], object]


class LoadingError(Exception):
    """An extension that cannot be loaded; `str(error)` says why in one line."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An extension that was found: what it is called, where it is, and how to get its `setup`. Nothing ran yet."""

    name: str
    place: str
    load: Callable[[], Setup]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, without the disabled ones, and a line for each thing that is wrong."""

    sources: tuple[Source, ...] = ()
    problems: tuple[str, ...] = ()


def find_extensions(home: Path, settings: ExtensionSettings, of_project: Sequence[Path] = ()) -> Found:
    """Return every extension that the user installed or named, in the order in which they are asked.

    Those `of_project` are the ones that the user trusts there; they come last.
    """
    problems: list[str] = []
    candidates = [*_installed(), *map(source_of, list_files(home / FOLDER))]
    for text in settings.paths:
        path = home / Path(text).expanduser()
        if is_extension(path):
            candidates.append(source_of(path))
        elif path.is_dir():
            candidates.extend(map(source_of, list_files(path)))
        else:
            problems.append(f"extensions.paths names {path}, which is neither a Python file nor a folder of them")
    if of_project:
        sys.dont_write_bytecode = True  # what is compiled lies beside them, is part of what is trusted, and must stay
        candidates.extend(map(source_of, of_project))
    return Found(sources=_once(candidates, settings.disabled, problems), problems=tuple(problems))


def list_files(folder: Path) -> list[Path]:
    """Return the extensions in a folder by name: Python files and packages; what begins with `_` or `.` is none."""
    try:
        return sorted((path for path in folder.iterdir() if is_extension(path)), key=lambda path: path.stem)
    except OSError:
        return []


def import_file(path: Path, name: str) -> ModuleType:
    """Import a file, or a package's folder, under a name of its own. Raises whatever its code raises."""
    from importlib.util import module_from_spec, spec_from_file_location

    is_package = path.is_dir()
    file = path / "__init__.py" if is_package else path
    digest = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:8]
    module_name = f"tenuto_extension_{digest}_{name.replace('.', '_')}"
    spec = spec_from_file_location(module_name, file, submodule_search_locations=[str(path)] if is_package else None)
    if spec is None or spec.loader is None:
        raise LoadingError(f"{file} is not a Python file")
    module = module_from_spec(spec)
    # Loaded once more: a package's own modules have to be read again too. Other threads import meanwhile.
    for known in list(sys.modules):
        if known == module_name or known.startswith(f"{module_name}."):
            del sys.modules[known]
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def setup_of(loaded: object) -> Setup:
    """Return the function that sets an extension up: the object itself, or its `setup`. Raises `LoadingError`."""
    setup = getattr(loaded, "setup", None) if isinstance(loaded, ModuleType) else loaded
    if not callable(setup):
        raise LoadingError("it has no function setup(tenuto)")
    return setup


def is_extension(path: Path) -> bool:
    """Say whether something in a folder of extensions is one."""
    if path.name.startswith(("_", ".")):
        return False
    return path.is_file() if path.suffix == ".py" else (path / "__init__.py").is_file()


def source_of(path: Path) -> Source:
    """Return a file, or a package's folder, as an extension."""
    return Source(name=path.stem, place=str(path), load=lambda: setup_of(import_file(path, path.stem)))


def _installed() -> Iterable[Source]:
    from importlib.metadata import entry_points  # costs more than everything else here together

    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        yield Source(name=point.name, place=point.value, load=lambda point=point: setup_of(point.load()))


def _once(candidates: Iterable[Source], disabled: Iterable[str], problems: list[str]) -> tuple[Source, ...]:
    """Leave out what is disabled, and the second of two with the same name."""
    chosen: dict[str, Source] = {}
    unwanted = frozenset(disabled)
    for source in candidates:
        first = chosen.setdefault(source.name, source)
        if first is not source and first.place != source.place and source.name not in unwanted:
            problems.append(
                f"two extensions are called {source.name}: {first.place} is used, {source.place} is left out"
            )
    return tuple(source for source in chosen.values() if source.name not in unwanted)
