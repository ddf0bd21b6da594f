"""Trying an extension: imported and set up in a process of its own, which says what it registers and what is wrong.

`python -m tenuto.extension.checking` reads a `Question` on standard input and writes a `Checked` to the descriptor that
was its standard output; what the extension prints goes nowhere near it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from tenuto.config.settings import ExtensionSettings
from tenuto.extension.api import EVENTS
from tenuto.extension.finding import Source, find_extensions, source_of
from tenuto.extension.host import ExtensionHost, Reserved
from tenuto.text.writable import to_json

SECONDS = 20.0
"""The whole try; an import that hangs is named before that."""
MOST_BYTES = 1_000_000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried: the file or folder `path`, or else the installed package `name`."""

    name: str
    path: str
    home: str
    reserved: Reserved
    seconds: float = 10.0


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a try: what is registered, by kind, and a line for each fault."""

    name: str
    place: str
    registers: dict[str, tuple[str, ...]] = {}
    faults: tuple[str, ...] = ()


def check(source: Source, home: Path, reserved: Reserved, seconds: float) -> Checked:
    """Try an extension in a process of its own. Never raises for what the extension does."""
    path = source.place if Path(source.place).is_absolute() else ""
    question = Question(name=source.name, path=path, home=str(home), reserved=reserved, seconds=seconds)
    fault = ""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tenuto.extension.checking"],
            input=to_json(question),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS + seconds,
            check=False,
        )
        return msgspec.json.decode(done.stdout[:MOST_BYTES], type=Checked)
    except subprocess.TimeoutExpired:
        fault = "it did not end in time"
    except (msgspec.DecodeError, OSError) as error:
        fault = f"the process that tried it ended without an answer ({error})"
    return Checked(name=source.name, place=source.place, faults=(fault,))


async def _try(question: Question) -> Checked:
    faults: list[str] = []
    host = ExtensionHost(
        lambda text, level: None,
        faults.append,
        question.seconds,
        reserved=question.reserved,
        load_timeout=question.seconds,
    )
    if question.path:
        sources = [source_of(Path(question.path))]
    else:
        found = find_extensions(Path(question.home), ExtensionSettings())
        sources = [source for source in found.sources if source.name == question.name]
    await host.load(sources)
    registers: dict[str, tuple[str, ...]] = {}
    for one in host.loaded:
        own = one.registered
        kinds = (
            ("tools", own.tools),
            ("renderers", own.renderers),
            ("commands", own.commands),
            ("providers", own.providers),
            ("strategies", own.strategies),
            ("hooks", one.hooks),
            ("events", [name for name, kind in EVENTS.items() if kind in own.events]),
        )
        registers = {kind: tuple(names) for kind, names in kinds if names}
    return Checked(name=question.name, place=question.path or question.name, registers=registers, faults=tuple(faults))


def main() -> None:
    """Answer the question on standard input, and end at once, whatever threads the extension has."""
    answers = os.dup(1)
    os.dup2(2, 1)
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    data = memoryview(to_json(asyncio.run(_try(question))))
    while data:
        data = data[os.write(answers, data) :]
    os._exit(0)


if __name__ == "__main__":
    main()
