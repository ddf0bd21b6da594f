"""What a model calls: a tool of a server under its public name, and the two that stand for many tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.model import ToolSchema
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural
from tenuto.text.writable import to_json
from tenuto.tool.mcp.remote import CallFailed, ConnectionLost, RemoteResult, RemoteTool
from tenuto.tool.mcp.results import frame_result, output_of
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import ArgumentError, ToolContext, ToolError

SEARCH, CALL = "mcp_search", "mcp_call"
MOST_FOUND = 8
_SUMMARY_CHARS = 120
_NAMED_CHARS = 600


Call = Callable[[dict[str, Any], Callable[[str], None]], Awaitable[RemoteResult]]
"""Calls a tool with its arguments; the function is given its progress. Raises `CallFailed` and `ConnectionLost`."""


class McpTool:
    """One tool of one server. `look` returns what the server says of it now, `None` where it has it no more."""

    parallel = False

    def __init__(self, name: str, server: str, look: Callable[[], RemoteTool | None], call: Call) -> None:
        self.name = name
        self._server = server
        self._look = look
        self._call = call

    def parse(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are: the server checks them."""
        return values

    def subject(self, arguments: dict[str, Any], context: ToolContext) -> ApprovalSubject:
        """Return what is asked of whom. What the server says of its tool is shown, and decides nothing."""
        del context
        tool = self._look()
        own = tool.name if tool is not None else self.name
        given = json.dumps(arguments, ensure_ascii=False)
        whole = json.dumps(arguments, ensure_ascii=False, indent=2)
        hint = "\n(The server says that this tool only reads.)" if tool is not None and tool.says_it_reads else ""
        return ApprovalSubject(
            kind="mcp",
            tool=self.name,
            summary=sanitize_line(f"{self._server}: {own} {shorten(given, _SUMMARY_CHARS)}"),
            detail=f"{own} of the MCP server {self._server}\n{whole}{hint}",
        )

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Call the server. Raises `ToolError`."""
        try:
            result = await self._call(arguments, context.emit)
        except CallFailed as error:
            raise ToolError(frame_result(str(error))) from None
        except (ConnectionLost, TimeoutError) as error:
            why = str(error) or "it does not answer"
            raise ToolError(f"The MCP server {self._server} cannot be asked: {why}") from None
        return output_of(result, context)


class SearchTool:
    """Finds tools of servers by words, with their schemas."""

    name = SEARCH
    parallel = True

    def __init__(self, tools: Callable[[], list[RemoteTool]]) -> None:
        self._tools = tools

    def parse(self, values: dict[str, Any]) -> str:
        """Return the words. Raises `ArgumentError`."""
        query = values.get("query", "")
        if not isinstance(query, str):
            raise ArgumentError("query: a text is needed")
        return query

    def subject(self, arguments: str, context: ToolContext) -> ApprovalSubject:
        """Nothing leaves the machine."""
        del context
        return ApprovalSubject(kind="none", tool=self.name, summary=sanitize_line(shorten(arguments, _SUMMARY_CHARS)))

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Return the best matches with everything that a call needs, and the names of some others."""
        del context
        tools = self._tools()
        found = search_tools(tools, arguments)
        if not found:
            names = shorten(", ".join(tool.schema.name for tool in tools), _NAMED_CHARS)
            return ToolOutput.of_text(f"No tool has these words. There are: {names}")
        shown = [
            f"{tool.schema.name}\n{tool.schema.description}\narguments: {bytes(tool.schema.parameters).decode()}"
            for tool in found[:MOST_FOUND]
        ]
        more = ", ".join(tool.schema.name for tool in found[MOST_FOUND:])
        rest = f"\n\nAlso: {shorten(more, _NAMED_CHARS)}" if more else ""
        return ToolOutput.of_text(frame_result("\n\n".join(shown) + rest))


class CallTool:
    """Calls a tool of a server by its public name; the guard judges that tool."""

    name = CALL
    parallel = False

    def __init__(self, find: Callable[[str], McpTool | None]) -> None:
        self._find = find

    def parse(self, values: dict[str, Any]) -> tuple[McpTool, dict[str, Any]]:
        """Return the tool that is meant and its arguments. Raises `ArgumentError`."""
        name, arguments = values.get("name", ""), values.get("arguments", {})
        if isinstance(arguments, str):  # some models write an object as a text
            try:
                arguments = json.loads(arguments or "{}")
            except ValueError:
                raise ArgumentError("arguments: they are not valid JSON") from None
        tool = self._find(name) if isinstance(name, str) else None
        if tool is None:
            raise ArgumentError(f"name: there is no tool {name!r}; {SEARCH} finds the names")
        if not isinstance(arguments, dict):
            raise ArgumentError("arguments: an object is needed")
        return tool, cast("dict[str, Any]", arguments)

    def subject(self, arguments: tuple[McpTool, dict[str, Any]], context: ToolContext) -> ApprovalSubject:
        """Return the subject of the tool that is meant."""
        tool, own = arguments
        return tool.subject(own, context)

    async def run(self, arguments: tuple[McpTool, dict[str, Any]], context: ToolContext) -> ToolOutput:
        """Call it. Raises `ToolError`."""
        tool, own = arguments
        return await tool.run(own, context)


def search_tools(tools: Sequence[RemoteTool], query: str) -> list[RemoteTool]:
    """Return the tools that have any of the words, those with most of them first; a word in the name counts more."""
    words = query.lower().replace("_", " ").split()
    scored: list[tuple[int, str, RemoteTool]] = []
    for tool in tools:
        name, said = tool.schema.name.lower(), tool.schema.description.lower()
        score = sum(10 * (word in name) + (word in said) for word in words)
        if query.strip().lower() == name:
            score += 1_000
        if score:
            scored.append((-score, tool.schema.name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda one: one[:2])]


def deferring_schemas(counts: Mapping[str, int]) -> tuple[ToolSchema, ...]:
    """Return the two tools that stand for many, which say how many each server has."""
    named = shorten(", ".join(f"{name} ({plural(number, 'tool')})" for name, number in counts.items()), _NAMED_CHARS)
    return (
        _schema(
            SEARCH,
            f"Find tools of the user's MCP servers by words; what is found shows its arguments. Servers: {named}.",
            {"query": {"type": "string"}},
            ["query"],
        ),
        _schema(
            CALL,
            f"Call a tool that {SEARCH} has found.",
            {"name": {"type": "string"}, "arguments": {"type": "object"}},
            ["name"],
        ),
    )


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> ToolSchema:
    parameters = {"type": "object", "properties": properties, "required": required}
    return ToolSchema(name=name, description=description, parameters=msgspec.Raw(to_json(parameters)))
