"""One MCP server as it is configured, whatever file names it. Pure: what it takes from the environment is passed in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta

from tenuto.text.late import late

NAME_CHARS = 64
_VARIABLE = late(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "remote": "http",
}
OLD_TRANSPORT = "sse"

Wait = Annotated[float, Meta(ge=0.01, le=604_800)]


class ServerError(Exception):
    """A server that cannot be used as it is configured; the message says why, behind its name."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a server is reached: a `command` that is started, or a `url`.

    `env` is what the command's environment has beside the few variables that every server gets; `cwd` is seen from the
    session's directory. `startup_timeout` and `call_timeout` are seconds.
    """

    command: str = ""
    """The program to start; it runs as you, in the session's directory."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = {}
    """Variables that it gets, beside `PATH`, `HOME` and a few more; keys of yours are not among those."""
    cwd: str = ""
    """Where it starts, seen from the session's directory."""
    url: str = ""
    """The address of a server that speaks streamable HTTP."""
    headers: dict[str, str] = {}
    """What goes along with each request to that address."""
    enabled: bool = True
    """Off: this server is left out."""
    startup_timeout: Wait = 30.0
    """Seconds that it has to answer for the first time."""
    call_timeout: Wait = 300.0
    """Seconds that one call may take."""

    @property
    def transport(self) -> Literal["stdio", "http"]:
        """The way to it."""
        return "http" if self.url else "stdio"


class NamedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server, its name, and the file that it stands in. A project's own counts only once the user trusts it."""

    name: str
    server: McpServer
    source: str
    of_project: bool = False
    written: str = ""
    """The whole entry as it stands in the file, as JSON in a fixed order: what a user's trust is bound to."""


def check_name(name: str) -> str:
    """Return why a name cannot be used, empty when it can."""
    if not name or len(name) > NAME_CHARS or not name.isprintable() or set(name) & set("/\\:@ "):
        return f"a name has 1 to {NAME_CHARS} printable characters, and none of / \\ : @ or a space"
    return ""


def read_server(values: object) -> McpServer:
    """Return a server from an object of a JSON or TOML file of ours or of another agent. Raises `ServerError`.

    What other agents know beside it (descriptions, lists of tools that need no approval) is left out.
    """
    if not isinstance(values, dict):
        raise ServerError("its value is not an object")
    given = cast("dict[str, object]", values)
    kind = given.get("type", given.get("transport", ""))
    if kind == OLD_TRANSPORT:
        raise ServerError("the older SSE transport is not supported; use the server's streamable HTTP address")
    if isinstance(kind, str) and kind and kind not in _TRANSPORTS:
        raise ServerError(f"its type {kind} is not known; there are stdio and http")
    try:
        server = msgspec.convert(_ours(given), McpServer, strict=False)
    except msgspec.ValidationError as error:
        raise ServerError(str(error)) from None
    return check_server(server)


def check_server(server: McpServer) -> McpServer:
    """Return the server. Raises `ServerError` where it says neither or both of command and address."""
    if bool(server.command) == bool(server.url):
        raise ServerError("it needs a command or a url, and not both")
    if server.url and not server.url.startswith(("https://", "http://", "${")):
        raise ServerError("its url has to begin with https:// or http://")
    return server


def _ours(given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that we know, under our names."""
    made = {name: given[name] for name in McpServer.__struct_fields__ if given.get(name) is not None}
    for theirs, name in (("httpUrl", "url"), ("serverUrl", "url"), ("http_headers", "headers"), ("environment", "env")):
        if theirs in given and name not in made:
            made[name] = given[theirs]
    if isinstance(given.get("command"), list):  # the whole line in one list
        made["command"], *rest = cast("list[object]", given["command"]) or [""]
        made["args"] = rest
    for theirs, name in (("startup_timeout_sec", "startup_timeout"), ("tool_timeout_sec", "call_timeout")):
        if theirs in given:
            made[name] = given[theirs]
    if isinstance(given.get("timeout"), int | float):  # milliseconds, where others have it
        made["call_timeout"] = cast("float", given["timeout"]) / 1000
    if given.get("disabled") is True:
        made["enabled"] = False
    token = given.get("bearer_token_env_var")
    if isinstance(token, str) and token:
        headers = made.get("headers")
        made["headers"] = {
            "Authorization": f"Bearer ${{{token}}}",
            **(cast("dict[str, str]", headers) if isinstance(headers, dict) else {}),
        }
    return made


def expand(server: McpServer, environ: Mapping[str, str]) -> McpServer:
    """Return a server with `${NAME}` and `${NAME:-default}` replaced. Raises `ServerError` for what is not set."""
    return msgspec.structs.replace(
        server,
        command=_expand(server.command, environ),
        args=tuple(_expand(word, environ) for word in server.args),
        env={name: _expand(value, environ) for name, value in server.env.items()},
        cwd=_expand(server.cwd, environ),
        url=_expand(server.url, environ),
        headers={name: _expand(value, environ) for name, value in server.headers.items()},
    )


def _expand(text: str, environ: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1]) or match[2]
        if found is None:
            raise ServerError(f"the environment variable {match[1]} is not set")
        return found

    return _VARIABLE.sub(value, text)


def describe_server(server: McpServer) -> str:
    """Return what would be started or asked, on one line. Values of `env` and `headers` may be secret: names only."""
    import shlex

    if server.url:
        return server.url
    names = "".join(f"{name}=… " for name in server.env)
    return f"{names}{shlex.join([server.command, *server.args])}"
