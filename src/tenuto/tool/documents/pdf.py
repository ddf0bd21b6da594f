"""The text of a PDF file, page by page, taken out by a process that can be killed (`pdf_text.py`)."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec

import msgspec

from tenuto.tool.documents import pdf_text
from tenuto.tool.run.context import ToolError

PDF_SECONDS = 20.0
"""After this the pages that are there are shown."""
_EXTRA = "'tenuto[documents]'"
_HEAD = 1_024
"""Bytes in which readers look for the beginning of a PDF file."""


class _Answer(msgspec.Struct, frozen=True):
    """A line of the process."""

    pages: int = 0
    text: str | None = None
    problem: str = ""
    detail: str = ""
    done: bool = False


def is_pdf(data: bytes) -> bool:
    """Whether these bytes begin as a PDF file does."""
    return data[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n\0").startswith(b"%PDF-")


def pdf_text_of(data: bytes, name: str, watch: Callable[[subprocess.Popen[bytes]], None]) -> str:
    """Return the text of a PDF file with a header line for each page; where pages are left out, a last line says so.

    Raises `ToolError` that says what stands in the way and what to do. Takes at most `PDF_SECONDS`; `watch` is given
    the process and may kill it. Runs in a thread.
    """
    if find_spec("pypdf") is None:
        raise ToolError(
            f"{name} is a PDF file, and what reads it is not installed: the user can install it with "
            f"{install_command()}. "
            "pdftotext through bash does too, where it is there."
        )
    answers = _run(data, watch)
    problem = next((answer for answer in answers if answer.problem), None)
    if problem is not None and problem.problem == "encrypted":
        raise ToolError(
            f"{name} is encrypted: its text cannot be read without the password. With it, through bash: "
            "qpdf --password=… --decrypt IN OUT, then read OUT."
        )
    texts = [answer.text for answer in answers if answer.text is not None]
    if not texts:
        why = problem.detail if problem is not None else f"no page could be read within {PDF_SECONDS:g} s"
        raise ToolError(
            f"{name} is a PDF file that cannot be read ({why}). It may be damaged: try pdftotext or qpdf through bash."
        )
    pages = max(answer.pages for answer in answers)
    if not any(text.strip() for text in texts):
        raise ToolError(
            f"{name} is a PDF file of {pages:,} page{'s'[: pages != 1]} without text: it seems to be scanned. Through "
            "bash: ocrmypdf or tesseract makes text of it, pdftoppm -png makes images that read shows."
        )
    blocks = [f"--- page {number} of {pages} ---\n{_plain(text)}" for number, text in enumerate(texts, 1)]
    if len(texts) < pages:
        blocks.append(f"[Pages {len(texts) + 1} to {pages} are left out: pdftotext -f {len(texts) + 1} shows them.]")
    return "\n".join(blocks)


def install_command() -> str:
    """Return what installs the extra into the environment that runs the program: one made by uv has no pip."""
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {_EXTRA}"
    return f"{python} -m pip install {_EXTRA}"


def _plain(text: str) -> str:
    return "\n".join(text.splitlines()).strip("\n") if text.strip() else "(no text)"


def _run(data: bytes, watch: Callable[[subprocess.Popen[bytes]], None]) -> list[_Answer]:
    """Run the process over the bytes; return what it wrote, also when it had to be killed."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
        given.write(data)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", pdf_text.__file__],
            stdin=given,
            stdout=written,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            watch(process)
            process.wait(PDF_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
        written.seek(0)
        return [msgspec.json.decode(line, type=_Answer) for line in written if line.endswith(b"\n")]
