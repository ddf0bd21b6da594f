"""A long list of small values that takes little room: all but its end is packed, and unpacked where it is looked at.

An answer of 2 MB has 70 000 rows, of which fifty are on the screen: as objects they take 30 MB, packed 1 MB.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast, overload

import msgspec

T = TypeVar("T")
PART = 512
"""Values that are packed together."""
LOOSE = 1_024
"""Values at the end of what may be packed that stay as they are: they are looked at soon."""
_QUICK = 1
"""zlib's fastest level: rows of text become a tenth, and a better one takes three times as long."""


class _Pack(NamedTuple):
    """Values as bytes, how many there are, and what they are."""

    data: bytes
    length: int
    kind: type[Any]


@lru_cache(maxsize=6)
def _unpack(pack: _Pack) -> list[Any]:
    return msgspec.msgpack.decode(zlib.decompress(pack.data), type=list[pack.kind])


def _pack(values: list[Any], kind: type[Any]) -> _Pack | list[Any]:
    """Return values packed; as they are where they cannot be written (a lone half of a pair of surrogates)."""
    try:
        return _Pack(zlib.compress(msgspec.msgpack.encode(values), _QUICK), len(values), kind)
    except UnicodeEncodeError:
        return values


class Packed(Sequence[T]):
    """A list of immutable structs of one kind. It grows, and is cut, at its end; `copy` costs its end only."""

    def __init__(self, kind: type[T], values: Iterable[T] = ()) -> None:
        self._kind = kind
        self._parts: list[_Pack | list[T]] = []
        self._starts: list[int] = []
        self._before = 0
        """How many values are in the parts, which come before the end."""
        self._end: list[T] = [*values]

    def __len__(self) -> int:
        return self._before + len(self._end)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        """Return a value, or those of a slice as a list; only what holds them is unpacked."""
        if isinstance(index, slice):
            places = range(len(self))[index]
            if places and places[0] >= self._before and places[-1] >= self._before:
                return [self._end[place - self._before] for place in places]
            return [self[place] for place in places]
        place = index + len(self) if index < 0 else index
        if place >= self._before:
            return self._end[place - self._before]
        if place < 0:
            raise IndexError(index)
        number = bisect_right(self._starts, place) - 1
        return self._values(number)[place - self._starts[number]]

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self._parts)):
            yield from self._values(number)
        yield from self._end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Packed, list)):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(own == theirs for own, theirs in zip(self, others, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def append(self, value: T) -> None:
        """Add a value."""
        self._end.append(value)

    def extend(self, values: Iterable[T]) -> None:
        """Add values."""
        self._end.extend(values)

    def cut(self, length: int) -> None:
        """Take away all values from `length` on."""
        while length < self._before:
            self._before = self._starts.pop()
            self._end = [*_open(self._parts.pop())]
        del self._end[max(0, length - self._before) :]

    def pack(self, length: int) -> None:
        """Pack the values before `length`, which hardly anybody will ask for; the last of them wait a little."""
        while self._before + PART + LOOSE <= min(length, len(self)):
            self._add_part(_pack(self._end[:PART], self._kind), PART)
            del self._end[:PART]

    def copy(self, before: Iterable[T] = ()) -> Packed[T]:
        """Return a list with the same values behind those of `before`."""
        copy, first = Packed(self._kind, self._end), [*before]
        if first:
            copy._add_part(first, len(first))
        copy._parts += self._parts
        copy._starts += [start + len(first) for start in self._starts]
        copy._before = self._before + len(first)
        return copy

    def _add_part(self, part: _Pack | list[T], count: int) -> None:
        self._parts.append(part)
        self._starts.append(self._before)
        self._before += count

    def _values(self, number: int) -> list[T]:
        return _open(self._parts[number])


def _open(part: _Pack | list[Any]) -> list[Any]:
    return _unpack(part) if isinstance(part, _Pack) else part
