"""The tools of a session: schemas at once, code when it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

import msgspec

from tenuto.protocol.model import Family, ToolSchema

if TYPE_CHECKING:
    from tenuto.tool.run.context import Tool

_SCHEMA_FILE = Path(__file__).with_name("schemas.json")
_BUILTIN = {
    "read": "ReadTool",
    "write": "WriteTool",
    "edit": "EditTool",
    "apply_patch": "ApplyPatchTool",
    "bash": "BashTool",
    "grep": "GrepTool",
    "glob": "GlobTool",
    "todo": "TodoTool",
    "fetch": "FetchTool",
    "jobs": "JobsTool",
    "recall": "RecallTool",
    "compact": "CompactTool",
    "skill": "SkillTool",
    "agent": "AgentTool",
}
PATCHING, EDITING = frozenset({"apply_patch"}), frozenset({"edit", "write"})
"""What OpenAI's models were trained to change files with, and what all others change them with."""
_schemas: tuple[ToolSchema, ...] | None = None


def builtin_schemas() -> tuple[ToolSchema, ...]:
    """Return the prebuilt schemas of the built-in tools, read once."""
    global _schemas  # noqa: PLW0603 - a cache of a file that never changes
    if _schemas is None:
        _schemas = msgspec.json.decode(_SCHEMA_FILE.read_bytes(), type=tuple[ToolSchema, ...])
    return _schemas


class _Made(msgspec.Struct, frozen=True):
    """Schemas that were put together, and which of them were not built in."""

    registered: tuple[ToolSchema, ...]
    schemas: tuple[ToolSchema, ...]


def is_builtin(name: str) -> bool:
    """Say whether a tool is one of ours, whose schema is always the same."""
    return name in _BUILTIN


class ToolSource(Protocol):
    """Where tools come from that are not there from the start, and may go: extensions, MCP servers."""

    @property
    def offered(self) -> tuple[ToolSchema, ...]:
        """What a model is told of the tools, in a fixed order: the same object until something has changed."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, also one that a model was told of before and that is gone."""
        ...

    def only(self, names: frozenset[str]) -> ToolSource | None:
        """Return a source with no tools but these, for a sub-agent; `None` where those are for the agent alone."""
        ...


SourceKind = Literal["extensions", "servers"]


class ToolRegistry:
    """Built-in tools, then registered ones, in a fixed order: what is sent must not change (DESIGN section 7)."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._registered: dict[str, ToolSchema] = {}
        self._sources: dict[SourceKind, ToolSource] = {}
        self._schemas: dict[tuple[bool, frozenset[str]], _Made] = {}
        self._left_out: frozenset[str] = frozenset()
        self.is_warm = False
        """Whether what the first call needs is imported, or on its way."""

    def register(self, tool: Tool, schema: ToolSchema) -> None:
        """Add a tool. Raises `ValueError` when its name is taken."""
        if tool.name in _BUILTIN or tool.name in self._registered:
            raise ValueError(f"there is a tool named {tool.name} already")
        self._registered[tool.name] = schema
        self._schemas = {}
        self._tools[tool.name] = tool

    def attach(self, kind: SourceKind, source: ToolSource | None) -> None:
        """Take tools from elsewhere too, or no longer; those of extensions come before those of servers."""
        self._sources.pop(kind, None)
        if source is not None:
            self._sources[kind] = source

    def only(self, names: frozenset[str]) -> ToolRegistry:
        """Return a registry with no tools but these. Who may edit or write may do so by a patch, and the reverse."""
        made = ToolRegistry()
        changing = PATCHING | EDITING
        made._left_out = frozenset(self.names()) - (names if changing.isdisjoint(names) else names | changing)
        made._registered = {name: schema for name, schema in self._registered.items() if name not in made._left_out}
        made._tools = {name: self._tools[name] for name in made._registered}
        for kind, source in self._sources.items():
            made.attach(kind, source.only(names))
        return made

    def names(self) -> tuple[str, ...]:
        """Return the names of all tools."""
        every = (*_BUILTIN, *(schema.name for schema in self.registered))
        return tuple(name for name in every if name not in self._left_out)

    @property
    def registered(self) -> tuple[ToolSchema, ...]:
        """What a model is told of the tools that are not built in, as they are now."""
        offered = [source.offered for _, source in sorted(self._sources.items()) if source.offered]
        if len(offered) == 1 and not self._registered:
            return offered[0]
        return (*self._registered.values(), *(schema for one in offered for schema in one))

    def schemas(
        self,
        family: Family = "other",
        without: frozenset[str] = frozenset(),
        registered: tuple[ToolSchema, ...] | None = None,
    ) -> tuple[ToolSchema, ...]:
        """Return what a model of that family is told of the tools: the same object until one of them is another.

        `registered` are those that are not built in, as they were told before; else they are as they are now.
        """
        patches, more = family == "gpt", self.registered if registered is None else registered
        made = self._schemas.get((patches, without))
        if made is None or (made.registered is not more and made.registered != more):
            others = without | self._left_out | (EDITING if patches else PATCHING)
            own = (schema for schema in builtin_schemas() if schema.name not in others)
            made = self._schemas[patches, without] = _Made(more, (*own, *more))
        return made.schemas

    def get(self, name: str) -> Tool | None:
        """Return a tool, loading its module at the first use; `None` when there is none of that name.

        A built-in one is there for every model, whatever it was told of: it may know it from elsewhere.
        """
        tool = self._tools.get(name)
        if tool is None and not is_builtin(name):
            found = (source.find(name) for _, source in sorted(self._sources.items()))
            return next((one for one in found if one is not None), None)
        if tool is None and name in _BUILTIN and name not in self._left_out:
            module = import_module(f"tenuto.tool.{name}")
            tool = cast("Tool", getattr(module, _BUILTIN[name])())
            self._tools[name] = tool
        return tool

    def warm_up(self) -> None:
        """Import what the first call needs, once; meant for a thread while the model writes that call."""
        if self.is_warm:
            return
        self.is_warm = True
        import_module("tenuto.tool.run.arguments")
        for name in ("read", "edit", "apply_patch", "bash", "grep"):
            self.get(name)
