"""Stored keys: `auth.json` in Tenuto's home, and the keyring of the system where there is one.

`auth.json` has an entry for each stored key, also for those in the keyring: a start must not ask the keyring, which can
take its time or ask the user, to know which providers can be used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from msgspec import DecodeError, Struct
from msgspec import json as msgspec_json

from tenuto.model.json_files import write_json
from tenuto.private_files import locked, make_directory
from tenuto.protocol.model import ModelError

FILE = "auth.json"


class Keyring(Protocol):
    """What of a keyring is used. Backends raise what they like."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a secret."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Delete a secret."""
        ...


class InKeyring(Struct, frozen=True, forbid_unknown_fields=True):
    """The key is in the keyring, under this service and the provider's name."""

    keyring: str


Stored = str | InKeyring
"""A key, or where it is."""


class StoreError(Exception):
    """A key cannot be stored or forgotten; the text says why."""


def read_stored(home: Path) -> dict[str, Stored]:
    """Return what is stored by provider. A file that others may read is closed to them; a broken one counts as none."""
    try:
        return _read(home)
    except StoreError:
        return {}


def _read(home: Path) -> dict[str, Stored]:
    """Raises `StoreError` for a file that is there and cannot be read."""
    path = home / FILE
    try:
        with contextlib.suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
        return msgspec_json.decode(path.read_bytes(), type=dict[str, Stored])
    except FileNotFoundError:
        return {}
    except (OSError, DecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def store_key(home: Path, provider: str, key: str, *, in_file: bool = False) -> str:
    """Store a key in the keyring, else in the file, and return in words where it is. Raises `StoreError`.

    `in_file`: in the file, also where there is a keyring.
    """
    keyring = None if in_file else find_keyring()
    if keyring is None:
        _change(home, lambda stored: stored.update({provider: key}))
        return str(home / FILE)
    service = f"tenuto ({home})"
    try:
        keyring.set_password(service, provider, key)
    except Exception as error:  # backends raise what they like
        raise StoreError(f"the keyring did not take the key: {error}; --file stores it in {home / FILE}") from error
    _change(home, lambda stored: stored.update({provider: InKeyring(service)}))
    return "the keyring"


def forget_key(home: Path, provider: str) -> str:
    """Forget a stored key and return in words where it was, empty where there was none. Raises `StoreError`."""
    found = _read(home).get(provider)
    if found is None:
        return ""
    if isinstance(found, InKeyring):
        keyring = find_keyring()
        try:
            if keyring is not None and keyring.get_password(found.keyring, provider) is not None:
                keyring.delete_password(found.keyring, provider)
        except Exception as error:  # backends raise what they like
            raise StoreError(f"the keyring did not forget the key: {error}") from error
    _change(home, lambda stored: stored.pop(provider, None))
    return "the keyring" if isinstance(found, InKeyring) else str(home / FILE)


def _change(home: Path, change: Callable[[dict[str, Stored]], object]) -> None:
    try:
        make_directory(home)
        with locked(home):
            stored = _read(home)
            change(stored)
            write_json(home / FILE, stored)
    except OSError as error:
        raise StoreError(f"{home / FILE} cannot be written: {error.strerror or error}") from error


def find_keyring() -> Keyring | None:
    """Return the system's keyring, `None` where there is none that works. It may take a moment."""
    import keyring
    from keyring.errors import KeyringError

    try:
        backend = keyring.get_keyring()
    except (KeyringError, ImportError, OSError, ValueError, RuntimeError):
        return None
    return cast("Keyring", backend) if backend.priority > 0 else None


def fetch_from_keyring(provider: str, service: str) -> str:
    """Return a key that is in the keyring; it may ask the user. Raises `ModelError`."""
    hint = f"unlock it, or run tenuto login {provider}"
    keyring = find_keyring()
    if keyring is None:
        raise ModelError("auth", f"the key of {provider} is in the keyring, and there is none here", hint=hint)
    try:
        key = keyring.get_password(service, provider)
    except Exception as error:  # backends raise what they like
        raise ModelError("auth", f"the keyring did not give the key of {provider}: {error}", hint=hint) from error
    if not key:
        raise ModelError("auth", f"the key of {provider} is not in the keyring any more", hint=hint)
    return key
