"""Puts a setting into the user's own `settings.toml`; everything else in it stays as they wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from tenuto.private_files import replace_file


class SettingNotKept(Exception):  # noqa: N818 - it names what happened
    """The file cannot be changed; the text says why, and what to do."""


def keep_setting(home: Path, section: str, key: str, value: str) -> Path:
    """Set `key` in `[section]` and return the file. Raises `SettingNotKept`; the file is then as it was.

    Comments, order and spelling stay. A link to a file elsewhere stays a link.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    file = home / "settings.toml"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = file.resolve()
        document = cast("Any", tomlkit.parse(target.read_text(encoding="utf-8") if target.exists() else ""))
        if section not in document:
            document[section] = tomlkit.table()
        document[section][key] = value
        _write(target, document.as_string())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingNotKept(f"{file} cannot be written: {error}") from error
    except (TOMLKitError, TypeError, RecursionError) as error:
        wanted = f'[{section}] {key} = "{value}"'
        raise SettingNotKept(f"{file} is not valid, so {wanted} was not put into it: {error}") from error
    return file


def _write(target: Path, text: str) -> None:
    """Write the whole file or nothing; it keeps its mode, a new one is the owner's alone."""
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, text.encode(), mode)
