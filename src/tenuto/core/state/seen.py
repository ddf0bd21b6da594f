"""What reminders ask of the view, kept up as it grows: a step costs what it added, and not what the session has."""

from __future__ import annotations

import os
from typing import Self

from tenuto.protocol.message import DeveloperMessage, Message, ToolResultMessage


class SeenView:
    """The notes of the view that was followed last, in order, and the files that calls and mentions in it touched.

    `touched` are real paths in the order in which they came, `folders` the folders that those lie in.
    """

    def __init__(self) -> None:
        self.notes: list[DeveloperMessage] = []
        self.touched: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self._view: list[Message] = []

    def follow(self, view: list[Message]) -> Self:
        """Take in what has come to the view since the last call; all of it where the view is another one."""
        known = len(self._view)
        if view[:known] != self._view:  # mostly the same objects: comparing them as lists costs next to nothing
            known = 0
            self.notes, self.touched, self.folders = [], {}, {}
        for message in view[known:]:
            if isinstance(message, DeveloperMessage):
                self.notes.append(message)
            if isinstance(message, DeveloperMessage | ToolResultMessage):
                for use in message.files:
                    self.touched[use.path] = None
                    self.folders[os.path.dirname(use.path)] = None  # noqa: PTH120 - there are many
        self._view = view
        return self
