"""The tools of extensions as the runner knows tools: read, judged, run on the extension's lane, bounded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.extension.host import CallError, ExtensionHost
from tenuto.extension.registered import OwnTool, Result, ToolCall
from tenuto.guard.subject import ApprovalSubject
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.message import OwnView
from tenuto.protocol.part import ContentPart, TextPart
from tenuto.text.bounding import shorten
from tenuto.text.writable import to_json
from tenuto.tool.image import MAX_IMAGE_BYTES, image_facts
from tenuto.tool.output import ToolOutput, format_size
from tenuto.tool.run.context import ArgumentError, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.protocol.model import ToolSchema
    from tenuto.tool.run.context import Tool

_SUMMARY_CHARS = 120


class OwnTools:
    """A source of tools for the registry."""

    def __init__(self, host: ExtensionHost) -> None:
        self._host = host

    @property
    def offered(self) -> tuple[ToolSchema, ...]:
        """What a model is told of them: the same object all the time."""
        return self._host.tool_schemas

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name."""
        own = self._host.find_tool(name)
        return _ExtensionTool(self._host, own) if own is not None else None

    def only(self, names: frozenset[str]) -> None:
        """Give sub-agents none: an extension speaks for the session that it was loaded for."""
        del names


class _ExtensionTool:
    """One tool of an extension."""

    def __init__(self, host: ExtensionHost, own: OwnTool) -> None:
        self.name = own.name
        self.parallel = own.read_only
        self._host = host
        self._own = own

    def parse(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function wants them. Raises `ArgumentError`."""
        try:
            return self._own.read(values)
        except ValueError as error:
            raise ArgumentError(str(error)) from None

    def subject(self, arguments: dict[str, Any], context: ToolContext) -> ApprovalSubject:
        """Return what is called with what."""
        del context
        plain = msgspec.to_builtins(self._own.chosen(arguments), str_keys=True)
        given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in plain.items())
        whole = json.dumps(plain, ensure_ascii=False, indent=2)
        return ApprovalSubject(
            kind="extension",
            tool=self.name,
            summary=sanitize_line(shorten(given, _SUMMARY_CHARS)),
            detail=f"{self.name} of the extension {self._host.owner_of(self.name)}\n{whole}",
            reads=self._own.read_only,
        )

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run it. Raises `ToolError`."""
        call = ToolCall(id=context.call_id, cwd=context.cwd, emit=context.emit)
        try:
            result, lines = await self._host.run_tool(self._own, arguments, call)
        except CallError as error:
            raise ToolError(f"The tool {self.name} failed: {error}") from None
        view = OwnView(extension=self._host.owner_of(self.name), lines=lines, details=_raw(result.details))
        shown = (view,) if lines or result.details is not None else ()
        return ToolOutput(parts=_parts(result, context), ui=shown, is_error=result.is_error)


def _raw(details: object) -> msgspec.Raw:
    return msgspec.Raw(to_json(details))


def _parts(result: Result, context: ToolContext) -> tuple[ContentPart, ...]:
    """Return the text and the images; of an image that cannot be sent the text says so."""
    text = result.text
    images: list[ContentPart] = []
    for data in result.images:
        facts = image_facts(data)
        if facts is None or len(data) > MAX_IMAGE_BYTES:
            text += f"\n[an image of {format_size(len(data))} that cannot be sent]"
        else:
            images.append(context.store_image(data, facts))
    return (TextPart(text=text.strip("\n") or "Done."), *images)
