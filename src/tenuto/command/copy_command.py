"""/copy: the last answer, code from it, or the whole conversation, on the clipboard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Copy, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import text_of
from tenuto.session.exporters.export import Export, Wish
from tenuto.text.figures import plural

LABEL_CHARACTERS = 100
PREVIEW_CHARACTERS = 8_000


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Copy what is named: nothing or `N` for the last or the N-th last answer, `code [N]`, `all`."""
    match argument.lower().split():
        case []:
            return [_copy_answer(runtime, 1)]
        case ["all"]:
            return [await _copy_all(runtime)]
        case ["code"]:
            return [_offer_code(runtime)]
        case ["code", number] if number.isdecimal():
            return [_copy_code(runtime, int(number))]
        case [number] if number.isdecimal():
            return [_copy_answer(runtime, int(number))]
        case _:
            raise UsageError("/copy takes nothing, a number, all, or code and a number")


def _copy_answer(runtime: Runtime, number: int) -> CommandOutcome:
    answers = _answers(runtime)
    text = next((text for place, text in enumerate(answers, 1) if place == number), "")
    if text:
        return Copy(text)
    return Say("There is no answer to copy yet." if number == 1 else f"There are not {number} answers.", "warning")


def _offer_code(runtime: Runtime) -> CommandOutcome:
    """Copy the only block of code, or ask which."""
    blocks = code_blocks(next(_answers(runtime), ""))
    if not blocks:
        return Say("The last answer has no block of code; /copy takes all of it.", "warning")
    if len(blocks) == 1:
        return Copy(blocks[0][1])
    rows = tuple(
        Choice(
            f"code {number}",
            next((line.strip()[:LABEL_CHARACTERS] for line in code.split("\n") if line.strip()), "(empty)"),
            f"{language or 'text'}, {plural(code.count(chr(10)) + 1, 'line')}",
            preview=code[:PREVIEW_CHARACTERS],
        )
        for number, (language, code) in enumerate(blocks, 1)
    )
    return Choose("Copy which block of code?", "copy", rows, in_order=True)


def _copy_code(runtime: Runtime, number: int) -> CommandOutcome:
    blocks = code_blocks(next(_answers(runtime), ""))
    if 0 < number <= len(blocks):
        return Copy(blocks[number - 1][1])
    return Say(f"The last answer has {plural(len(blocks), 'block')} of code.", "warning")


async def _copy_all(runtime: Runtime) -> CommandOutcome:
    export = Export.of_session(runtime.live.session)
    chunks = await asyncio.to_thread(lambda: b"".join(export.chunks("md", Wish())))
    return Copy(chunks.decode("utf-8", "replace"))


def _answers(runtime: Runtime) -> Iterator[str]:
    """Yield the texts of the answers on the path, the newest first."""
    for entry in reversed(runtime.live.session.path()):
        if isinstance(entry, AssistantMessage) and (text := text_of(entry.parts).strip("\n")):
            yield text


def code_blocks(markdown: str) -> Sequence[tuple[str, str]]:
    """Return (language, code) of every block of code in a text, word for word."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(markdown)
    return [
        ((token.info.split() or [""])[0], token.content.removesuffix("\n"))
        for token in tokens
        if token.type in ("fence", "code_block")
    ]
