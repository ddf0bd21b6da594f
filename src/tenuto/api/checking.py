"""What a program gives, looked at before anything is opened: what does not fit is told by its name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, cast, get_args

from tenuto.core.errors import UsageError
from tenuto.protocol.entry import Mode
from tenuto.protocol.part import ImagePart
from tenuto.signatures import signature_of

MODES: tuple[str, ...] = get_args(Mode)
SHOWN = 60
"""Characters of a value in a message."""


def check_given(given: Mapping[str, object]) -> None:
    """Check options of an agent, or arguments of a prompt, by their names. Raises `UsageError` for the first misfit."""
    for name, value in given.items():
        if name in RULES and not RULES[name][0](value):
            raise UsageError(f"{name} takes {RULES[name][1]}, not {value!r:.{SHOWN}}")


def takes_one(function: object) -> bool:
    """Say whether a function can be called with one argument; of one that does not tell, nothing is known."""
    if not callable(function):
        return False
    try:
        signature_of(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # of C, without a signature
        return True
    return True


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _is_list(kind: type | tuple[type, ...]) -> Callable[[Any], bool]:
    """Say whether something is a list of such things. A text is a list of letters, which nobody means."""

    def fits(value: object) -> bool:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            return False
        return all(isinstance(one, kind) for one in cast("Sequence[object]", value))

    return fits


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_servers(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    given = cast("Mapping[object, object]", value)
    return all(isinstance(name, str) and isinstance(one, Mapping) for name, one in given.items())


def _is_strategy(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "compact", None))


PLACES = (str, PathLike)
TEXTS = "a list of texts"
RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "cwd": (lambda value: isinstance(value, PLACES), "a path"),
    "model": (_is_text, "a text, as provider/name"),
    "mode": (_or_none(lambda value: value in MODES), ", ".join(MODES[:-1]) + f" or {MODES[-1]}"),
    "approve": (_or_none(takes_one), "a function of one argument, the request"),
    "tools": (_is_list(object), "a list of functions"),
    "extensions": (_is_list(object), "a list of functions or modules"),
    "compaction": (_or_none(_is_strategy), "an object with a method compact"),
    "instructions": (_is_text, "a text"),
    "allow": (_is_list(str), TEXTS),
    "deny": (_is_list(str), TEXTS),
    "directories": (_is_list(PLACES), "a list of paths"),
    "servers": (_or_none(_is_servers), "a dict of servers by their names, each a dict as in an mcp.json"),
    "max_turns": (_or_none(lambda value: isinstance(value, int) and _is_number(value)), "a whole number from 1"),
    "max_cost": (_or_none(_is_number), "a number over 0"),
    "settings": (_or_none(lambda value: isinstance(value, Mapping)), "a dict of sections"),
    "resume": (lambda value: value is True or isinstance(value, str), "a text, or True"),
    "home": (_or_none(lambda value: isinstance(value, PLACES)), "a path"),
    "environ": (_or_none(lambda value: isinstance(value, Mapping)), "a dict of texts"),
    "prompt": (_is_text, "a text"),
    "line": (lambda value: _is_text(value) and value.strip(" /") != "", "a text, as /context"),
    "images": (_is_list((*PLACES, bytes, ImagePart)), "a list of paths or bytes"),
    "timeout": (_or_none(_is_number), "a number of seconds over 0"),
    "listener": (takes_one, "a function of one argument, the event"),
}
"""What each takes, in words. What is behind a `UsageError` of its own (a directory, a rule) is not looked at here."""
