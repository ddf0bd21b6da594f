"""Names of models as gateways write them, and which model of a family a name is. Pure.

    name   = prefix* core suffix*
    prefix = anything "/"                          models/…, openrouter/anthropic/…, accounts/x/models/…
           | letters "."                           us.anthropic.…
    suffix = "-" date | "-v" digits [":" digits]   -20260101, -2026-01-01, -v1:0
           | "@" anything | "-latest"              @20260101, @default
           | ":" word                              :free, :batch: another offer of the same model

A core is words and numbers: `claude-opus-5-5` is the family (claude, opus) in version (5, 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_NAME = 300
"""Characters: what is longer is no name that a catalogue has."""
# Texts, not compiled: a start with a local model needs none of them, and most others two.
_PREFIX = r"[a-z][a-z-]*\.(?=[a-z])|[^/]*/"
_SUFFIX = r"(?:@.*|-v\d+(?::\d+)?|:[\w.]+|-20\d{6}|-20\d\d-\d\d-\d\d|-latest)$"
_POINT = r"(?<=\d)\.(?=\d)"
_LAST_ZEROS = r"(?<=\d)\.(\d*?)0+(?!\d)"
"""Of a decimal: grok-4.20 is older than grok-4.3."""
_NUMBERED = r"([a-z]*)(\d{1,2})"


class Form(msgspec.Struct, frozen=True):
    """One reading of a name. `same_offer`: nothing was taken off that stands for another price."""

    text: str
    same_offer: bool


def forms(name: str) -> tuple[Form, ...]:
    """Return the readings of a name in lower case, from the whole to its core; none of what is too long for one."""
    text, same_offer = name.strip().lower(), True
    if len(text) > MAX_NAME:
        return ()
    found: dict[str, bool] = {}
    while text:
        for form in without_prefixes(text):
            found.setdefault(form, same_offer)
        cut = re.search(_SUFFIX, text)
        if cut is None:
            break
        same_offer = same_offer and not cut[0].startswith(":")
        text = text[: cut.start()]
    return tuple(Form(text, same) for text, same in found.items())


def names_offer(name: str) -> bool:
    """Whether a suffix of a name stands for another offer of the same model, and another price: `:free`."""
    cut = re.search(_SUFFIX, name)
    return cut is not None and (cut[0].startswith(":") or names_offer(name[: cut.start()]))


def without_prefixes(name: str) -> Iterator[str]:
    """Yield a name, then what is left as its prefixes are taken off one by one."""
    while name:
        yield name
        cut = re.match(_PREFIX, name)
        name = name[cut.end() :] if cut else ""


def key(name: str) -> str:
    """Return what is equal for names that differ in how a version is written: `gpt-5.6` and `gpt-5-6`."""
    return re.sub(_POINT, "-", name)


def core(name: str) -> str:
    """Return a name without its prefixes and suffixes."""
    found = forms(name)
    return found[-1].text if found else ""


def version(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return a core's family, and which of it: numbers compare as versions do, and are empty where the name has none.

    Numbers of three digits and more, and sizes (`70b`), are of the family.
    """
    family: list[str] = []
    numbers: list[int] = []
    for word in re.split(r"[-_. ]+", key(re.sub(_LAST_ZEROS, _shortened, name))):
        numbered = re.fullmatch(_NUMBERED, word)
        if numbered is None:
            family.append(word)
            continue
        family += [numbered[1]] if numbered[1] else []
        numbers.append(int(numbered[2]))
    return tuple(family), tuple(numbers)


def _shortened(decimals: re.Match[str]) -> str:
    return f".{decimals[1]}" if decimals[1] else ""
