"""The answer to a shell that asks what may stand next, in the place where the words would be parsed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from tenuto.config.sources import home_directory, load_settings


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer with what this parser takes, and end the program, where a shell asks; else do nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    home = home_directory(os.environ)

    for action in _actions(parser):
        if completer := COMPLETERS.get(action.dest):
            cast("Any", action).completer = _filling(completer, home)
    os.environ["_ARGCOMPLETE"] = str(len(parser.prog.split()))  # so many words are not this parser's
    argcomplete.autocomplete(parser, always_complete_options=False)  # not before a dash is typed


def _filling(completer: Callable[[Path], Sequence[str]], home: Path) -> Callable[..., Sequence[str]]:
    def fill(**_asked: object) -> Sequence[str]:
        return completer(home)

    return fill


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    found: list[argparse.Action] = []
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse has no public list
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for each in cast("dict[str, argparse.ArgumentParser]", action.choices).values():
                found += _actions(each)
    return found


def _models(home: Path) -> Sequence[str]:
    from tenuto.model.registry import ModelRegistry

    settings, _ = load_settings(home, None, os.environ)
    return ModelRegistry(settings, home, os.environ).known_names()


def _sessions(home: Path) -> Sequence[str]:
    from tenuto.session.library.catalog import session_directories

    return [directory.name for directory in session_directories(home, None)]


def _keys(_home: Path) -> Sequence[str]:
    from tenuto.config.manual import parts, settings_in

    plain = [(name, section) for name, section in parts() if "NAME" not in name and '"' not in name]
    return [f"{name}.{one.name}".lstrip(".") for name, section in plain for one in settings_in(section)]


COMPLETERS: dict[str, Callable[[Path], Sequence[str]]] = {
    "model": _models,
    "resume": _sessions,
    "session": _sessions,
    "id": _sessions,
    "ids": _sessions,
    "key": _keys,
}
"""What fills the arguments of that name."""
