"""Reading a line: our own strict grammar and tree-sitter's have to find the same commands and the same words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from tenuto.guard.shell.grammar import read_grammar
from tenuto.guard.shell.syntax import (
    AndOr,
    Case,
    For,
    Group,
    If,
    Node,
    Pipeline,
    ProcessSubstitution,
    Redirection,
    Sequence,
    Simple,
    Substitution,
    UnreadableError,
    While,
    Word,
)
from tenuto.guard.shell.tree import Places, Span, read_tree


class Line(msgspec.Struct, frozen=True):
    """A line of shell. `problem` says why it is not understood, to be read behind "because"; then it has no body."""

    source: str
    body: Sequence
    problem: str = ""


@lru_cache(maxsize=256)
def read_line(source: str) -> Line:
    """Return what a line says; never raises."""
    try:
        body = read_grammar(source)
        _compare(source, body, read_tree(f"{source}\n".encode()))  # it wants an end behind a here-document
    except UnreadableError as error:
        return Line(source, Sequence(()), str(error))
    except RecursionError:
        return Line(source, Sequence(()), "it is nested too deep")
    return Line(source, body)


def nodes_in(node: Node) -> Iterator[Node]:
    """Yield a node and all that it holds, substitutions and here-documents too, in the order of the line."""
    yield node
    for child in _children(node):
        yield from nodes_in(child)
    for word in _words_of(node):
        yield from _nodes_in_word(word)


def simple_commands(node: Node) -> Iterator[Simple]:
    """Yield every simple command."""
    return (found for found in nodes_in(node) if isinstance(found, Simple))


def redirections_of(node: Node) -> tuple[Redirection, ...]:
    """Return a node's own redirections."""
    return () if isinstance(node, Pipeline | AndOr | Sequence) else node.redirections


def _nodes_in_word(word: Word) -> Iterator[Node]:
    for piece in word.pieces:
        if isinstance(piece, Substitution | ProcessSubstitution):
            yield from nodes_in(piece.body)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Simple():
            return ()
        case Pipeline() | Sequence():
            return node.items
        case AndOr():
            return (node.first, *node.rest)
        case Group() | For():
            return (node.body,)
        case While():
            return (node.condition, node.body)
        case If():
            return tuple(part for branch in node.branches for part in branch if part is not None)
        case Case():
            return tuple(branch.body for branch in node.branches)


def _words_of(node: Node) -> Iterator[Word]:
    """Yield the words that stand in a node itself."""
    if isinstance(node, Simple):
        yield from (assignment.value for assignment in node.assignments)
        yield from node.words
    if isinstance(node, For):
        yield from node.words or ()
    if isinstance(node, Case):
        yield node.word
    for redirection in redirections_of(node):
        yield redirection.target
        if redirection.body is not None:
            yield redirection.body


def _compare(source: str, body: Sequence, found: Places) -> None:
    """Raises `UnreadableError` where the two readings differ."""
    ours = Places(set(), set(), set())
    for node in nodes_in(body):
        _note(node, ours)
    offset = _byte_offsets(source)
    names = {offset[start] for start in ours.names}
    words, tests = _in_bytes(ours.words, offset), _in_bytes(ours.tests, offset)
    differing = _outside(words, tests) ^ _outside(found.words, tests)
    # tree-sitter drops a "-" in front of a here-document
    is_known = all((start, end) in words and source.encode()[start:end] == b"-" for start, end in differing)
    if names != found.names or tests != found.tests or not is_known:
        raise UnreadableError("it has more than one reading")


def _note(node: Node, ours: Places) -> None:
    if isinstance(node, Simple):
        if node.words:
            ours.names.add(node.words[0].start)
            if node.words[0].keyword in ("[", "[["):
                ours.tests.add((node.words[0].start, node.words[-1].end))
        ours.words.update((word.start, word.end) for word in node.words)
        # The value of an assignment begins behind its name
        ours.words.update(
            (assignment.value.start - len(assignment.name) - 1 - assignment.appends, assignment.value.end)
            for assignment in node.assignments
        )
    if isinstance(node, For):
        ours.words.update((word.start, word.end) for word in node.words or ())
    if isinstance(node, Case):
        ours.words.add((node.word.start, node.word.end))
        ours.tests.update((branch.patterns[0].start, branch.patterns[-1].end) for branch in node.branches)
    for redirection in redirections_of(node):
        if redirection.body is None:
            ours.words.add((redirection.target.start, redirection.target.end))


def _byte_offsets(source: str) -> range | list[int]:
    if source.isascii():
        return range(len(source) + 1)
    offsets = [0]
    for char in source:
        offsets.append(offsets[-1] + len(char.encode()))
    return offsets


def _in_bytes(spans: set[Span], offset: range | list[int]) -> set[Span]:
    return {(offset[start], offset[end]) for start, end in spans}


def _outside(words: set[Span], tests: set[Span]) -> set[Span]:
    """Leave out what stands in conditions and patterns of a case, which tree-sitter takes apart in its own way."""
    if not tests:
        return words
    return {(start, end) for start, end in words if not any(first <= start and end <= last for first, last in tests)}
