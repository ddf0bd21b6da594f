"""How a tool says that a call failed; the runner makes the result of it."""

from __future__ import annotations

from tenuto.protocol.message import FileUse


class ToolError(Exception):
    """A call that cannot be done; the text goes to the model and says what to do instead.

    `files` are uses to record all the same (a file whose present content the text shows).
    """

    def __init__(self, text: str, *, files: tuple[FileUse, ...] = ()) -> None:
        super().__init__(text)
        self.files = files


class ArgumentError(ToolError):
    """Arguments that do not fit the tool's schema."""
