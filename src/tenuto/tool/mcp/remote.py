"""What servers have and say, as plain data: nothing here needs the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tenuto.protocol.model import ToolSchema


class RemoteTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server: its own name, what a model is told, and whether the server says that it only reads."""

    name: str
    schema: ToolSchema
    says_it_reads: bool = False


class RemotePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt of a server; `arguments` are their names, the needed ones first in `needed`."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


class RemoteResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a server has to read."""

    uri: str
    name: str = ""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What a server has. `left_out` says of what was not taken, and why."""

    version: str = ""
    """Of the protocol, as negotiated."""
    tools: tuple[RemoteTool, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    resources: tuple[RemoteResource, ...] = ()
    left_out: tuple[str, ...] = ()


class RemoteImage(msgspec.Struct, frozen=True):
    """The bytes of an image."""

    data: bytes


class RemoteFile(msgspec.Struct, frozen=True):
    """Bytes that are neither text nor an image: sound, a document."""

    data: bytes
    media_type: str
    name: str = ""


RemoteBlock = str | RemoteImage | RemoteFile


class RemoteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call, of a prompt or of reading a resource."""

    blocks: tuple[RemoteBlock, ...]
    is_error: bool = False


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """What a server asks the user: a message, and the schema of an object, or an address to open."""

    server: str
    message: str
    fields: Mapping[str, Any] = {}
    needed: tuple[str, ...] = ()
    url: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer to an elicitation; "cancel" is none."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = {}


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where servers work: the session's directory, its environment, the folders of logs and of running processes."""

    cwd: Path
    home: Path
    environ: Mapping[str, str]
    logs: Path
    records: Path


def innermost(error: BaseException) -> BaseException:
    """Return the first error that a group of them, which streams raise, is about."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


class ConnectionLost(Exception):  # noqa: N818 - it names what happened
    """A server that cannot be asked any more; the message says why."""


class CallFailed(Exception):  # noqa: N818 - it names what happened
    """A server that answers with an error; the message is its own."""
