"""What a program gives its agent, as the core takes it: rules, settings, servers, images, schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tenuto.config.sources import given_source
from tenuto.core.agent.attachments import ImageTooLargeError, NotAnImageError, keep_image
from tenuto.core.errors import UsageError
from tenuto.guard.rules import Rule, RuleError, read_rule
from tenuto.protocol.part import ImagePart

if TYPE_CHECKING:
    from tenuto.api.schema import OutputSchema
    from tenuto.config.mcp.servers import NamedServer
    from tenuto.session.session import Session

Image = str | Path | bytes | ImagePart
"""A file with an image, its bytes, or one that the session has: PNG, JPEG, GIF or WebP, at most 3.75 MB."""


def read_rules(effect: Literal["allow", "deny"], texts: Sequence[str]) -> list[Rule]:
    """Return rules of one effect. Raises `UsageError`."""
    try:
        return [read_rule(text, effect, "option") for text in texts]
    except RuleError as error:
        raise UsageError(f"{effect}: {error}") from None


def check_settings(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return settings in nested sections, all of which exist. Raises `UsageError`."""
    problems = given_source(values).problems if values else ()
    if problems:
        raise UsageError("; ".join(problems))
    return values


def read_servers(given: Mapping[str, Mapping[str, Any]]) -> tuple[NamedServer, ...]:
    """Return MCP servers by their names. Raises `UsageError`."""
    if not given:
        return ()
    from tenuto.config.mcp.servers import NamedServer, ServerError, check_name, read_server

    servers: list[NamedServer] = []
    for name, values in given.items():
        try:
            if fault := check_name(name):
                raise ServerError(fault)
            servers.append(NamedServer(name=name, server=read_server(dict(values)), source="the program"))
        except ServerError as error:
            raise UsageError(f"servers: {name}: {error}") from None
    return tuple(servers)


def read_schema(schema: Any) -> OutputSchema | None:
    """Return what an answer has to fit, `None` for anything. Raises `UsageError`."""
    if schema is None:
        return None
    from tenuto.api.schema import schema_of

    return schema_of(schema)


def read_image(session: Session, image: Image) -> ImagePart:
    """Keep an image in the session, and return it. Raises `UsageError`."""
    if isinstance(image, ImagePart):
        return image
    name = "" if isinstance(image, bytes) else str(image)
    try:
        data = image if isinstance(image, bytes) else (session.cwd / Path(image).expanduser()).read_bytes()
        return keep_image(session.store, data, Path(name).name if name else "image")
    except NotAnImageError:
        raise UsageError(f"{name or 'these bytes'}: no PNG, JPEG, GIF or WebP image") from None
    except ImageTooLargeError:
        raise UsageError(f"{name or 'the image'} is too large: 3.75 MB at most") from None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from None
