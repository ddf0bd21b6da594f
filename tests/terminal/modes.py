"""What a terminal is set to after some output: its modes, which screen shows, and kitty's keyboard flags."""

from __future__ import annotations

import re

ON_AT_FIRST = {7, 25}
"""Wrapping, and the cursor."""
OTHER_SCREEN = {47, 1047, 1049}
_SEQUENCE = re.compile(rb"\x1b\[(?:\?([0-9;]+)([hlsr])|([<>=])([0-9;]*)u|>4;?([0-9]*)m)")


class Modes:
    """A terminal that knows all modes. Each of its two screens has its own stack of keyboard flags."""

    def __init__(self) -> None:
        self.on = set(ON_AT_FIRST)
        self.other_screen = False
        self.more_keys = 0
        self._saved: set[int] = set()
        self._flags: tuple[list[int], list[int]] = ([], [])

    def state(self) -> tuple[object, ...]:
        """Everything that must be as before."""
        flags = [stack[-1] if stack else 0 for stack in self._flags]
        return sorted(self.on), self.other_screen, self.more_keys, flags

    def feed(self, output: bytes) -> None:
        """Do what the output says."""
        for modes, switch, action, numbers, more in _SEQUENCE.findall(output):
            if switch:
                for mode in map(int, modes.split(b";")):
                    self._do(mode, switch)
            elif action:
                self._change_flags(action, [int(one or 0) for one in numbers.split(b";")])
            else:
                self.more_keys = int(more or 0)

    def _do(self, mode: int, switch: bytes) -> None:
        if switch == b"s":
            (self._saved.add if mode in self.on else self._saved.discard)(mode)
        else:
            self._switch(mode, mode in self._saved if switch == b"r" else switch == b"h")

    def _switch(self, mode: int, on: bool) -> None:
        if mode in OTHER_SCREEN:
            self.other_screen = on
        elif on:
            self.on.add(mode)
        else:
            self.on.discard(mode)

    def _change_flags(self, action: bytes, numbers: list[int]) -> None:
        stack = self._flags[self.other_screen]
        if action == b">":
            stack.append(numbers[0])
        elif action == b"<":
            del stack[-max(1, numbers[0]) :]
        elif stack:
            stack[-1] = numbers[0]
        else:
            stack.append(numbers[0])
