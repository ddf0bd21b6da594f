"""What every tool is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import FileUse
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import ToolContext


class Tool(Protocol):
    """A tool. `parallel`: calls of it may run side by side."""

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether several calls may run at the same time."""
        ...

    def parse(self, values: dict[str, Any]) -> Any:
        """Return the arguments as the tool wants them. Raises `ArgumentError`."""
        ...

    def subject(self, arguments: Any, context: ToolContext) -> ApprovalSubject:
        """Return what the call would do. Runs in a thread; changes nothing. Raises `ToolError` when it cannot be."""
        ...

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        """Do it. Raises `ToolError`; a cancellation leaves nothing half done and nothing running."""
        ...


@runtime_checkable
class PlacedTool(Protocol):
    """A tool that looks at a file to say what a call would do. Where the call may not run, it does not look."""

    def place(self, arguments: Any, context: ToolContext) -> ApprovalSubject:
        """Return what can be said of the call by its path alone. Reads nothing. Raises `ToolError`."""
        ...


class BuiltinTool:
    """Base of the built-in tools: their arguments are pydantic models, loaded at the first call."""

    name = ""
    parallel = True

    def parse(self, values: dict[str, Any]) -> Any:
        """Return the validated arguments. Raises `ArgumentError`."""
        from tenuto.tool.run.arguments import parse_arguments

        try:
            return parse_arguments(self.name, values)
        except ValueError as error:
            raise ArgumentError(str(error)) from None


class ToolError(Exception):
    """A call that cannot be done; the text goes to the model and says what to do instead.

    `files` are uses to record all the same (a file whose present content the text shows).
    """

    def __init__(self, text: str, *, files: tuple[FileUse, ...] = ()) -> None:
        super().__init__(text)
        self.files = files


class ArgumentError(ToolError):
    """Arguments that do not fit the tool's schema."""
