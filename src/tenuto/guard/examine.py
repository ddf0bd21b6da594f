"""What the guard knows of a shell line: whether it only reads, its commands for rules, where it writes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tenuto.guard.readers.judge import Reading, judge_line
from tenuto.guard.readers.places import Place
from tenuto.guard.shell.parse import Line, nodes_in, read_line, redirections_of
from tenuto.guard.shell.rules import describe_command, writes_elsewhere
from tenuto.guard.shell.syntax import Simple
from tenuto.guard.shell.writes import outside_writes
from tenuto.guard.subject import SimpleCommand


class LineFacts(msgspec.Struct, frozen=True):
    """`reads`: the line only reads what may be read unasked; `reason` says why not. See `ApprovalSubject`."""

    reads: bool
    reason: str
    commands: tuple[SimpleCommand, ...]
    problem: str
    writes: tuple[str, ...]


def examine_line(source: str, place: Place) -> LineFacts:
    """Return what is known of a line that would run in this place. Looks at the disk, runs nothing."""
    line = read_line(source)
    reading = judge_line(line, place)
    return LineFacts(
        reads=not reading.reason,
        reason=reading.reason,
        commands=(*_commands(line, reading), *(SimpleCommand(barrier=other) for other in reading.others)),
        problem=line.problem,
        writes=outside_writes(source, place.roots, place.cwd, place.environ) if reading.reason else (),
    )


def _commands(line: Line, reading: Reading) -> Iterator[SimpleCommand]:
    for node in nodes_in(line.body):
        if isinstance(node, Simple):
            inner = reading.inner.get(id(node))
            if inner is None or inner.problem or node.assignments or node.redirections:
                yield describe_command(node, reads=reading.only_reads(node))
            if inner is not None:
                yield from _commands(inner, reading)
        elif any(writes_elsewhere(redirection) for redirection in redirections_of(node)):
            yield SimpleCommand(barrier="the output of several commands goes to a file")
