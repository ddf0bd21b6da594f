"""What the early phase paints of a front-end. For the type checker alone: it is too dear to be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tenuto.tui.first_paint.paint import Look, Size


class Picture(Protocol):
    """Returns sequences for the terminal. `text` and `cursor` (an offset in characters) are what has been typed."""

    @property
    def leave(self) -> str:
        """Ends what was begun."""
        ...

    @property
    def hand_over(self) -> str:
        """Goes to where the front-end paints its first frame."""
        ...

    @property
    def settling(self) -> float:
        """Seconds after which another width is painted for, if it stays."""
        ...

    def begin(self, size: Size, look: Look, text: str, cursor: int, /) -> str:
        """Take the place and paint everything."""
        ...

    def resize(self, size: Size, look: Look, text: str, cursor: int, /) -> str:
        """Paint everything in another size."""
        ...

    def recolour(self, size: Size, look: Look, text: str, cursor: int, /) -> str:
        """Paint everything in other colours."""
        ...

    def show(self, size: Size, look: Look, text: str, cursor: int, /) -> str:
        """Paint what has been typed."""
        ...
