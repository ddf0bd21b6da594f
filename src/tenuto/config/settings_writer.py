"""Changing a `settings.toml`: one key, the rest stays as the user wrote it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from tenuto.config.lines import describe_fault
from tenuto.private_files import replace_file

Key = tuple[str, ...]
"""A setting with the tables that it stands in, the outermost first."""


class SettingNotKept(Exception):  # noqa: N818 - it names what happened
    """The file cannot be changed; the text says why, and what to do."""


def read_key(text: str) -> Key:
    """Return the key that `ui.theme` or `models."openai/gpt-6.1".effort` names, as in TOML. Raises `ValueError`."""
    try:
        value: Any = tomllib.loads(f"{text} = 0") if "=" not in text and "\n" not in text else 0
    except (tomllib.TOMLDecodeError, RecursionError):
        value = 0
    key: list[str] = []
    while isinstance(value, dict):
        name, value = next(iter(cast("dict[str, Any]", value).items()))
        key.append(name)
    if not key:
        raise ValueError(f"“{text}” is no key; keys are written as ui.theme or 'models.\"openai/gpt-6.1\".effort'")
    return tuple(key)


def keep_value(file: Path, key: Key, value: object) -> None:
    """Set a key in a file of settings, which is made where there is none. Raises `SettingNotKept`."""

    def put(document: Any) -> None:
        _table(document, key[:-1])[key[-1]] = value

    _change(file, put, f"{'.'.join(key)} was not put into it")


def drop_value(file: Path, key: Key) -> bool:
    """Take a key out of a file of settings; returns whether it stood there. Raises `SettingNotKept`."""
    found: list[bool] = []

    def take(document: Any) -> None:
        place = document
        for name in key[:-1]:
            place = place.get(name, {})
        if key[-1] in place:
            del place[key[-1]]
            found.append(True)

    if file.exists():
        _change(file, take, f"{'.'.join(key)} was not taken out of it")
    return bool(found)


def keep_setting(home: Path, section: str, key: str, value: str) -> Path:
    """Set `key` in `[section]` of the user's own file and return the file. Raises `SettingNotKept`."""
    file = home / "settings.toml"
    keep_value(file, (section, key), value)
    return file


def keep_rule(home: Path, effect: Literal["allow", "ask", "deny"], text: str) -> Path:
    """Add a rule to the user's own and return the file. Raises `SettingNotKept`."""

    def put(document: Any) -> None:
        section = _table(document, ("approvals",))
        if text not in section.setdefault(effect, []):
            section[effect].append(text)

    return _change(home / "settings.toml", put, f"the rule {text} was not put into it")


def drop_rule(home: Path, effect: Literal["allow", "ask", "deny"], text: str) -> Path:
    """Take a rule out of the user's own, however it is spelled there: `text` is what it is read as.

    Returns the file. Raises `SettingNotKept`, also when the rule is not there.
    """

    def take(document: Any) -> None:
        rules = _table(document, ("approvals",)).get(effect, [])
        alike = [each for each in rules if "".join(each.split()) == "".join(text.split())]
        for each in alike:
            rules.remove(each)
        if not alike:
            raise SettingNotKept(f"{home / 'settings.toml'} has no rule to {effect} {text}")

    return _change(home / "settings.toml", take, f"the rule {text} was not taken out of it")


def _table(document: Any, names: Sequence[str]) -> Any:
    """Return the table with these names, made where it is missing; only the last gets a header of its own."""
    import tomlkit

    place = document
    for depth, name in enumerate(names, 1):
        if name not in place:
            place[name] = tomlkit.table(is_super_table=depth < len(names))
        place = place[name]
    return place


def _change(file: Path, change: Callable[[Any], None], otherwise: str) -> Path:
    """Change a file. Comments, order and spelling stay. A link to a file elsewhere stays a link."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = ""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = file.resolve()
        text = target.read_text(encoding="utf-8") if target.exists() else ""
        tomllib.loads(text)  # it says better where a file is broken
        document = cast("Any", tomlkit.parse(text))
        change(document)
        _write(target, document.as_string())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingNotKept(f"{file} cannot be written: {describe_fault(error, text)}") from error
    except (tomllib.TOMLDecodeError, TOMLKitError, AttributeError, TypeError, RecursionError) as error:
        fault = f"{file} is not valid, so {otherwise}: {describe_fault(error, text)}"
        raise SettingNotKept(f"{fault}; tenuto config edit opens it") from error
    return file


def _write(target: Path, text: str) -> None:
    """Write the whole file or nothing; it keeps its mode, a new one is the owner's alone."""
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, text.encode(), mode)
