"""`tenuto login` and `tenuto logout`: storing a provider's key, checked, and forgetting it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tenuto.cli.parsing import Parser, complain, parse, say, say_json, settings_for
from tenuto.exit_codes import FAILED, INTERRUPTED, OK
from tenuto.guard.secrets import KNOWN
from tenuto.model.access.stored import StoreError, forget_key, read_stored, store_key
from tenuto.model.access.supply import strangeness
from tenuto.model.endpoint import Endpoint
from tenuto.model.endpoints import Endpoints
from tenuto.model.registry import new_client
from tenuto.protocol.model import ModelError
from tenuto.text.figures import plural
from tenuto.text.matching import did_you_mean

CHECK_SECONDS = 15.0
"""Seconds that a server has for its list of models."""


class Checked(Struct, frozen=True):
    """What a server said of a key. `unknown`: it could not be asked, or has no list."""

    verdict: Literal["accepted", "refused", "unknown"]
    said: str = ""


def run_login(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto login [PROVIDER]`; returns the exit code: 0 stored, 1 refused or not stored, 2 bad usage."""
    parser = Parser(
        prog="tenuto login",
        description="Store the key of a provider: in the keyring of the system where there is one, else in a file that "
        "only you can read. It is asked for without being shown, or read from standard input, and checked first; "
        "OpenRouter gives one on a page (--browser). "
        "Without a provider: where each has its key.",
    )
    parser.add_argument("provider", nargs="?", default="", metavar="PROVIDER", help="as in PROVIDER/MODEL")
    parser.add_argument("--offline", action="store_true", help="do not check the key")
    parser.add_argument("--browser", action="store_true", help="openrouter: log in on a page and get a key there")
    parser.add_argument("--code", action="store_true", help="openrouter: the same, from a page on another machine")
    parser.add_argument("--file", action="store_true", help="store it in the file, not in the keyring")
    parser.add_argument("--json", action="store_true", help="without a provider: as one JSON object")
    parsed = parse(parser, arguments)
    if isinstance(parsed, int):
        return parsed
    endpoints = _endpoints(home, environ)
    if not parsed.provider:
        return _list(endpoints, home, environ, as_json=parsed.json)
    try:
        endpoint = endpoints.get(parsed.provider)
    except ModelError as error:
        return complain(str(error))
    is_on_page = parsed.browser or parsed.code
    key = _get_key(endpoint, by_code=parsed.code) if is_on_page else _ask_key(parsed.provider)
    if isinstance(key, int):
        return key
    KNOWN.learn(f"key of {parsed.provider}", key)
    if not parsed.offline and not _is_usable(endpoint, key):
        return FAILED
    try:
        place = store_key(home, parsed.provider, key, in_file=parsed.file)
    except StoreError as error:
        return complain(str(error), FAILED)
    say(f"Stored in {place}.")
    if endpoint.key_name and environ.get(endpoint.key_name):
        say(f"{endpoint.key_name} is set, too, and comes before it.")
    elif endpoint.key_command:
        say(f"api_key_cmd is set under [providers.{parsed.provider}] and comes before it.")
    return OK


def run_logout(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto logout [PROVIDER]`; returns the exit code: 0 forgotten, 1 it cannot be, 2 bad usage."""
    parser = Parser(prog="tenuto logout", description="Forget the stored key of a provider.")
    parser.add_argument(
        "provider", nargs="?", default="", metavar="PROVIDER", help="may be left out where one key is stored"
    )
    parsed = parse(parser, arguments)
    if isinstance(parsed, int):
        return parsed
    stored = read_stored(home)
    provider = parsed.provider or (next(iter(stored)) if len(stored) == 1 else "")
    if not provider:
        return complain(f"name one of {', '.join(stored)}" if stored else "no key is stored")
    try:
        place = forget_key(home, provider)
    except StoreError as error:
        return complain(str(error), FAILED)
    if not place:
        known = f"; stored are {', '.join(stored)}" if stored else ""
        return complain(f"no key of {provider} is stored{did_you_mean(provider, stored) or known}")
    say(f"The key of {provider} is gone from {place}.")
    _say_what_is_left(provider, home, environ)
    return OK


def _say_what_is_left(provider: str, home: Path, environ: Mapping[str, str]) -> None:
    try:
        endpoints = _endpoints(home, environ)
        endpoint = endpoints.get(provider)
    except ModelError:
        return
    if endpoint.has_key:
        say(f"There is another one, which is used from now on: {endpoints.source_of_key(endpoint)}.")


def _endpoints(home: Path, environ: Mapping[str, str]) -> Endpoints:
    settings = settings_for(home, None, environ)
    return Endpoints(settings, home, environ)


def _list(endpoints: Endpoints, home: Path, environ: Mapping[str, str], *, as_json: bool) -> int:
    """Say where each provider has its key, and what to type."""
    rows: dict[str, str] = {}
    for name in dict.fromkeys([*endpoints.names(), *read_stored(home)]):
        try:
            endpoint = endpoints.get(name)
        except ModelError as error:
            rows[name] = error.text
        else:
            rows[name] = endpoints.source_of_key(endpoint) or "no key"
    if as_json:
        say_json({"providers": [{"provider": name, "key": said} for name, said in rows.items()]})
        return OK
    width = max(map(len, rows))
    for name, said in rows.items():
        say(f"{name:<{width}}  {said}")
    say("tenuto login PROVIDER stores a key, tenuto logout PROVIDER forgets it.")
    return OK


def _ask_key(provider: str) -> str | int:
    """Return the key that the user types or pipes in, or the exit code after saying why there is none."""
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - it was closed
        typed = _type_hidden(f"Key of {provider} (it is not shown): ")
        if typed is None:
            return INTERRUPTED
    else:
        typed = sys.stdin.readline() if sys.stdin is not None else ""  # pyright: ignore[reportUnnecessaryComparison]
    key = typed.strip()
    if not key:
        return complain("no key was given; nothing was stored")
    if strange := strangeness(key):
        return complain(f"the key {strange}; nothing was stored")
    return key


def _get_key(endpoint: Endpoint, *, by_code: bool) -> str | int:
    """Return the key that a login on the provider's page gives, or the exit code after saying why there is none."""
    from tenuto.model.access.browser import BROWSER_LOGINS, BrowserLogin, log_in

    if endpoint.provider not in BROWSER_LOGINS:
        known = ", ".join(sorted(BROWSER_LOGINS))
        return complain(f"{endpoint.provider} documents no login on a page for programs of others; known: {known}")
    unkeyed = msgspec.structs.replace(endpoint, key="", key_command="", keyring="")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if not by_code:
            return asyncio.run(log_in(unkeyed, _open_page))
        login = BrowserLogin(unkeyed)
        say(f"Open this page, log in, and copy the code: {login.page()}")
        code = _ask_key(f"{endpoint.provider}, the code")
        return code if isinstance(code, int) else asyncio.run(login.exchange(code))
    except ModelError as error:
        return complain(f"{error}; nothing was stored", FAILED)
    except KeyboardInterrupt:
        complain("nothing was stored")
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)


def _open_page(address: str) -> None:
    import webbrowser

    say(f"Open this page and log in: {address}")
    say("Ctrl+C gives up. On another machine than your browser's, use --code.")
    webbrowser.open(address)


def _type_hidden(question: str) -> str | None:
    """Return what is typed without an echo, `None` when the user gave up."""
    from getpass import getpass

    # A signal that ends the program at once would leave the terminal without its echo.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return getpass(question)
    except (KeyboardInterrupt, EOFError):
        say("")
        complain("nothing was stored")
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _is_usable(endpoint: Endpoint, key: str) -> bool:
    """Check a key with its server and say what came of it; one that cannot be checked may be right."""
    known = msgspec.structs.replace(endpoint, key=key, key_command="", keyring="", bearer_only=False)
    checked = asyncio.run(_check(known))
    match checked.verdict:
        case "accepted":
            say(f"{endpoint.provider} accepts the key: {checked.said}.")
        case "unknown":
            complain(f"the key was not checked: {checked.said}", OK)
        case "refused":
            complain(f"nothing was stored: {endpoint.provider} at {endpoint.host} refuses the key: {checked.said}")
    return checked.verdict != "refused"


async def _check(endpoint: Endpoint) -> Checked:
    client = new_client(endpoint, _no_blob)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            models = await client.models()
    except ModelError as error:
        return Checked("refused" if error.kind == "auth" else "unknown", error.text)
    except TimeoutError:
        return Checked("unknown", f"{endpoint.host} did not answer in {CHECK_SECONDS:g} seconds")
    finally:
        await client.close()
    return Checked("accepted", plural(len(models), "model"))


def _no_blob(sha256: str) -> bytes:
    raise FileNotFoundError(sha256)
