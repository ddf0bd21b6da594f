"""Commands that show or write texts: diff, export, copy, transcript."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from tenuto.command.counting import A_DAY, run_counted
from tenuto.command.outcome import Choice, Choose, CommandOutcome, Copy, Page, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.git import Git, GitFailedError, GitRefusedError, open_git
from tenuto.guard.terminal import sanitize_keeping_colour, sanitize_line
from tenuto.private_files import make_directory
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import text_of
from tenuto.session.errors import SessionError
from tenuto.session.exporters.export import FORMATS, Export, ExportRequest
from tenuto.session.plans import shown_answer
from tenuto.session.session import Session
from tenuto.text.figures import format_bytes, plural
from tenuto.tool.search.search import Stop

DIFF = (
    *("-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
    *("--no-color-moved", "--stat", "--patch", "--color=always"),
)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files: there is nothing else to compare with before the first commit."""
SECONDS = 20.0
MAX_NEW_FILES = 200
MAX_NEW_BYTES = 1_000_000
"""Of so many new files, each of at most this size, the content is shown; of the others the name."""


async def run_diff(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the changes of the project, or of the paths that are named. Raises `UsageError` where git cannot say."""
    cwd = runtime.live.session.cwd
    text = await asyncio.to_thread(collect_changes, cwd, argument.split())
    return [Page(_write(text)) if text else Say("Nothing has changed since the last commit.")]


def collect_changes(cwd: Path, paths: Sequence[str]) -> str:
    """Return the changes of what git tracks, then what it would track, coloured; nothing else a terminal obeys."""
    try:
        git = open_git(cwd)
        if git is None:
            raise UsageError(f"{cwd} is in no git repository")
        look = _Look(git, cwd if paths else git.root)
        base = "HEAD" if look.say("rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1)) else EMPTY_TREE
        where = ("--", *(paths or (".",)))
        parts = [look.say(*DIFF, base, *where)]
        new = [name for name in look.say("ls-files", "-o", "--exclude-standard", "-z", *where).split("\0") if name]
        parts += [look.new_file(name) for name in new[:MAX_NEW_FILES]]
        parts += [f"new, not shown: {name}\n" for name in new[MAX_NEW_FILES:]]
    except GitRefusedError as refused:
        raise UsageError(f"git is not run here: {refused}; !!git diff shows the changes all the same") from refused
    except GitFailedError as failed:
        raise UsageError(str(failed)) from failed
    return sanitize_keeping_colour("\n".join(part for part in parts if part))


class _Look:
    """What git says in one directory. Raises `UsageError` where it fails."""

    def __init__(self, git: Git, cwd: Path) -> None:
        self._git = git
        self._cwd = cwd

    def say(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        """Return the output of a git command that ends with one of these codes."""
        ran = self._git.run(self._cwd, *words, seconds=SECONDS)
        if ran.returncode not in codes:
            raise UsageError(f"git: {ran.stderr.decode('utf-8', 'replace').strip()}")
        return ran.stdout.decode("utf-8", "replace")

    def new_file(self, name: str) -> str:
        """Return the whole of a file that git does not know yet."""
        path = self._cwd / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_NEW_BYTES:
            return f"new, not shown: {name}\n"
        return self.say(*DIFF[:-3], DIFF[-1], "--no-index", "--", os.devnull, name, codes=(0, 1))


def _write(text: str) -> str:
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=".diff")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path


EXPORTS = "exports"
"""The folder in Tenuto's home for what was given no place: in a working directory it would soon be committed."""
_FLAGS = ("--force", "--active-path")


async def run_export(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Write the session as it is now; the conversation may go on meanwhile. The file is never replaced unasked."""
    wish = parse_export(argument)
    session = runtime.live.session
    export, cwd = Export.of_session(session), session.cwd
    try:
        if not wish.output:
            wish = msgspec.structs.replace(wish, output=_own_folder(runtime.home))
        done = await run_counted(runtime, "Exporting", lambda stop: export.write(wish, cwd, stop.hear), seconds=A_DAY)
    except SessionError as error:
        raise UsageError(sanitize_line(str(error))) from error
    return [Say(f"Exported to {sanitize_line(str(done.path))} ({format_bytes(done.size)}).")]


def _own_folder(home: Path) -> str:
    """Return the folder for exports, made if it is not there. Raises `UsageError`."""
    folder = home.absolute() / EXPORTS
    try:
        make_directory(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot make {folder}: {reason}; name a file: /export PATH") from error
    return f"{folder}{os.sep}"


def parse_export(argument: str) -> ExportRequest:
    """Read `[--force] [--active-path] [html|md|jsonl|atif] [PATH]`; the path is the rest as it stands, spaces included.

    Raises `UsageError` for a flag that there is none of.
    """
    flags: set[str] = set()
    form = ""
    rest = argument.strip()
    while rest:
        word, _, behind = rest.partition(" ")
        if word in _FLAGS:
            flags.add(word)
        elif word in FORMATS and not form:
            form = word
        elif word.startswith("--"):
            raise UsageError(f"/export knows no {word}; there are {' and '.join(_FLAGS)}")
        else:
            break
        rest = behind.lstrip()
    for flag in _FLAGS:
        if rest.endswith(f" {flag}"):
            flags.add(flag)
            rest = rest.removesuffix(flag).rstrip()
    quoted = len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "\"'"
    return ExportRequest(
        output=rest[1:-1] if quoted else rest,
        format=form,
        force="--force" in flags,
        active_path="--active-path" in flags,
    )


LABEL_CHARACTERS = 100
PREVIEW_CHARACTERS = 8_000


async def run_copy(runtime: Runtime, argument: str) -> list[CommandOutcome]:
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

    def read(stop: Stop) -> str:
        return b"".join(export.chunks("md", ExportRequest(), stop.hear)).decode("utf-8", "replace")

    return Copy(await run_counted(runtime, "Copying", read, seconds=A_DAY))


def _answers(runtime: Runtime) -> Iterator[str]:
    """Yield the texts of the answers on the path, the newest first."""
    for entry in reversed(runtime.live.session.path()):
        if isinstance(entry, AssistantMessage) and (text := text_of(shown_answer(entry).parts).strip("\n")):
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


READER_PATIENCE = 60.0
"""Seconds after which nobody will read any more."""
_LOOK_AGAIN = 0.005
"""Seconds between two looks whether somebody reads."""


def open_stream(chunks: Iterator[bytes], suffix: str) -> str:
    """Return the path of a pipe that gives the chunks to its reader; they are made as they are read.

    The reader removes it. Raises `OSError`.
    """
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=suffix)
    os.close(handle)
    Path(path).unlink()
    os.mkfifo(path, 0o600)
    threading.Thread(target=_page_stream_write, args=(path, chunks), name="page", daemon=True).start()
    return path


def _page_stream_write(path: str, chunks: Iterator[bytes]) -> None:
    descriptor = _wait_for_reader(path)
    if descriptor is None:
        return
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as file:
        try:
            for chunk in chunks:
                file.write(chunk)
        except SessionError as error:
            file.write(f"\n{error}\n".encode())


def _wait_for_reader(path: str) -> int | None:
    """Return the pipe's end to write to once somebody reads, `None` where nobody does."""
    deadline = time.monotonic() + READER_PATIENCE
    while time.monotonic() < deadline:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return None  # it was removed unread
            time.sleep(_LOOK_AGAIN)
            continue
        os.set_blocking(descriptor, True)
        return descriptor
    Path(path).unlink(missing_ok=True)
    return None


async def run_transcript(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show all of it, whatever is on the screen: its beginning at once, the rest as it is read."""
    del argument
    return [await asyncio.to_thread(page_session, runtime.live.session)]


def page_session(session: Session) -> Page:
    """Return the page with all that was said in a session. Raises `UsageError`."""
    try:
        return Page(open_stream(_begin(session), ".md"))
    except (OSError, SessionError) as error:
        raise UsageError(f"the transcript cannot be written: {error}") from error


def _begin(session: Session) -> Iterator[bytes]:
    """Return the pieces of the page. The first is made already, so that a failure comes here."""
    chunks = Export.of_session(session).chunks("md", ExportRequest())
    return chain([next(chunks, b"")], chunks)
