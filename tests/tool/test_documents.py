"""PDF files and notebooks: what `read` shows of them, and that nothing takes it for the file (B15)."""

from __future__ import annotations

import asyncio
import json
import string
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import v4

from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.tool.documents import pdf as pdf_module
from tenuto.tool.documents.notebook import notebook_lines, parse_notebook
from tests.tool.documents import encrypted, pdf, pdf_of
from tests.tool.support import Bench
from tests.tool.test_bash import HANG, alive

SLOW = b"BT (x) Tj ET " * 3_000_000
"""A page that keeps the parser busy for minutes."""


def rows(result: ToolResultMessage) -> list[str]:
    """The lines of a result, without their numbers."""
    return [row.partition("\t")[2] for row in text_of(result.parts).split("\n") if "\t" in row]


# --- PDF files ---


async def test_b15_a_pdf_is_read_page_by_page(bench: Bench) -> None:
    path = bench.write("paper.dat", pdf(["Title\nof it", "", "The end"]))
    result = await bench.call("read", path="paper.dat")
    assert text_of(result.parts) == (
        "1\t--- page 1 of 3 ---\n2\tTitle\n3\tof it\n4\t--- page 2 of 3 ---\n5\t(no text)\n"
        "6\t--- page 3 of 3 ---\n7\tThe end"
    )
    (use,) = result.files
    assert (use.path, use.op) == (str(path), "read")
    assert bench.context.files.digest(str(path)) == use.sha256
    assert not bench.context.outputs.exists(), "what is shown whole is not stored"


async def test_b15_offset_and_limit_are_lines_of_the_text_which_is_kept(bench: Bench) -> None:
    bench.write("paper.pdf", pdf([f"page {number}\nand its {number}th word" for number in range(1, 201)]))
    seen: list[str] = []
    result = await bench.call("read", path="paper.pdf", limit=7)
    kept = Path(result.output_path)
    assert f"All of its text is in {kept}: grep it. 593 more lines of 600; go on with offset=8." in text_of(
        result.parts
    )
    assert kept.read_text().split("\n")[:3] == ["--- page 1 of 200 ---", "page 1", "and its 1th word"]
    assert result.output_size == kept.stat().st_size
    while len(seen) < 600:
        result = await bench.call("read", path="paper.pdf", offset=len(seen) + 1, limit=250)
        seen += rows(result)
    assert seen == kept.read_text().split("\n")
    assert [path.name for path in bench.context.outputs.iterdir()] == [kept.name], "kept once"
    assert "past its end" in await bench.error("read", path="paper.pdf", offset=601)
    bench.write("paper.pdf", pdf(["another\n" * 9]))
    assert rows(await bench.call("read", path="paper.pdf", limit=2)) == ["--- page 1 of 1 ---", "another"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (encrypted(pdf(["secret"]), "a password"), "is encrypted"),
        (pdf(["cut"])[:200], "damaged"),
        (b"%PDF-1.4\n\x00\x01", "damaged"),
        (b"%PDF-1.7\n" + b"x" * 5_000, "damaged"),
        (pdf(["", ""]), "2 pages without text: it seems to be scanned"),
        (pdf_of([]), "cannot be read"),
    ],
    ids=["encrypted", "cut off", "a head alone", "no objects", "scanned", "no pages"],
)
async def test_b15_a_pdf_without_readable_text_gets_a_clear_message(bench: Bench, data: bytes, said: str) -> None:
    bench.write("paper.pdf", data)
    text = await bench.error("read", path="paper.pdf")
    assert said in text
    assert "bash" in text
    assert bench.context.files.digest(str(bench.work / "paper.pdf")) == "", "nothing of it was seen"


async def test_b15_an_owners_password_alone_hides_no_text(bench: Bench) -> None:
    bench.write("paper.pdf", encrypted(pdf(["for all to read"]), ""))
    assert "for all to read" in await bench.text("read", path="paper.pdf")


async def test_b15_a_pdf_that_keeps_the_parser_busy_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_module, "PDF_SECONDS", 3.0)
    bench.write("bomb.pdf", pdf_of([b"BT /F1 12 Tf (first) Tj ET", SLOW]))
    text = await asyncio.wait_for(bench.text("read", path="bomb.pdf"), HANG)
    assert "2\tfirst\n" in text
    assert "[Pages 2 to 2 are left out: pdftotext -f 2 shows them.]" in text
    async with asyncio.timeout(HANG):
        while alive("pdf_text.py"):
            await asyncio.sleep(0.01)


async def test_b15_a_cancel_ends_the_parser(bench: Bench) -> None:
    bench.write("bomb.pdf", pdf_of([SLOW]))
    task = asyncio.ensure_future(bench.call("read", path="bomb.pdf"))
    while not alive("pdf_text.py"):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, HANG)
    async with asyncio.timeout(HANG):  # it is killed; until the system has taken it away it is listed
        while alive("pdf_text.py"):
            await asyncio.sleep(0.01)


async def test_b15_only_so_many_pages_are_read(bench: Bench) -> None:
    bench.write("long.pdf", pdf(["a"] * 1_003))
    text = await bench.text("read", path="long.pdf", offset=1_999)
    assert "--- page 1000 of 1003 ---\n2000\ta\n2001\t[Pages 1001 to 1003 are left out" in text


def test_b15_without_the_extra_a_message_says_which_command_installs_it(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'pypdf' else find(name, *rest)\n"
        "from tests.tool.support import make_bench\n"
        "async def main():\n    bench = make_bench(Path(sys.argv[1]))\n"
        "    bench.write('p.pdf', b'%PDF-1.4')\n    print(await bench.error('read', path='p.pdf'))\n"
        "asyncio.run(main())\nassert 'pypdf' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert sys.executable in done.stdout
    assert "'tenuto[documents]'" in done.stdout


async def test_b15_a_pdf_is_never_edited_as_its_text(bench: Bench) -> None:
    """Its bytes are ASCII, so that as text they could be changed."""
    plain = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\nBT (Hello) Tj ET\n"
    path = bench.write("paper.pdf", plain)
    for arguments in ({"old_string": "Hello", "new_string": "Bye"}, {"old_string": "BT", "new_string": ""}):
        assert "is a PDF file" in await bench.error("edit", path="paper.pdf", **arguments)
    path.write_bytes(pdf(["Hello"]))
    await bench.text("read", path="paper.pdf")
    assert "is a PDF file" in await bench.error("edit", path="paper.pdf", old_string="Hello", new_string="Bye")
    assert "is a PDF file" in await bench.error("write", path="paper.pdf", content="--- page 1 of 1 ---\nBye")
    assert path.read_bytes() == pdf(["Hello"])


# --- notebooks ---


def notebook() -> bytes:
    """A notebook as Jupyter writes it."""
    stream = v4.new_output("stream", name="stdout", text="\x1b[31mred\x1b[0m\n10%\r100%\n")
    long = v4.new_output("stream", name="stdout", text="".join(f"row {number}\n" for number in range(500)))
    figure = v4.new_output("display_data", data={"image/png": "A" * 4_000, "text/plain": "<Figure size 640x480>"})
    table = v4.new_output(
        "execute_result", data={"text/html": "<table></table>", "text/plain": "a b"}, execution_count=3
    )
    error = v4.new_output(
        "error", ename="ValueError", evalue="no", traceback=["\x1b[0;31mTraceback\x1b[0m", "ValueError: no"]
    )
    cells = [
        v4.new_markdown_cell("# Title\n\nWords"),
        v4.new_code_cell("x = 1\nprint(x)", execution_count=3, outputs=[stream, figure, table]),
        v4.new_code_cell("", outputs=[long, error]),
        v4.new_raw_cell("as it is"),
    ]
    made = v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    )
    nbformat.validate(made)
    return nbformat.writes(made).encode()


async def test_b15_a_notebook_is_read_as_its_cells(bench: Bench) -> None:
    path = bench.write("study.ipynb", notebook())
    result = await bench.call("read", path="study.ipynb")
    shown = rows(result)
    start = [
        "(notebook: 4 cells, python; outputs shortened, images left out)",
        "--- cell 1 of 4: markdown ---", "# Title", "", "Words",
        "--- cell 2 of 4: code [3] ---", "x = 1", "print(x)",
        "--- output of cell 2 ---", "red", "100%",
        "--- output of cell 2 ---", "<Figure size 640x480>", "[image image/png, 3,000 bytes: not shown]",
        "--- output of cell 2 ---", "a b", "[text/html, 15 bytes: not shown]",
        "--- cell 3 of 4: code ---", "(empty)",
        "--- output of cell 3 ---", "row 0",
    ]  # fmt: skip
    assert shown[: len(start)] == start
    end = ["row 499", "--- output of cell 3 ---", "Traceback", "ValueError: no", "--- cell 4 of 4: raw ---", "as it is"]
    assert shown[-len(end) :] == end
    assert "[… 460 lines, 3,600 characters of this output left out …]" in shown
    (use,) = result.files
    assert (use.path, use.op) == (str(path), "read")
    part = await bench.call("read", path="study.ipynb", offset=6, limit=3)
    assert rows(part) == start[5:8]
    assert part.truncated


async def test_b15_a_notebook_of_format_3_is_read(bench: Bench) -> None:
    old = {
        "nbformat": 3,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 1, "source": ["Old"]},
                    {
                        "cell_type": "code",
                        "input": ["1 +\n", "1"],
                        "prompt_number": 7,
                        "outputs": [{"output_type": "pyout", "text": ["2"], "png": "A" * 400}],
                    },
                ]
            }
        ],
    }
    bench.write("old.ipynb", json.dumps(old))
    assert rows(await bench.call("read", path="old.ipynb"))[1:] == [
        "--- cell 1 of 2: heading ---", "Old",
        "--- cell 2 of 2: code [7] ---", "1 +", "1",
        "--- output of cell 2 ---", "2", "[image image/png, 300 bytes: not shown]",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": []}', "plain\n", "[" * 50_000, '{"nbformat": 4}'])
async def test_b15_what_is_no_notebook_is_the_text_that_it_is(bench: Bench, text: str) -> None:
    bench.write("broken.ipynb", text + "x = 1")
    shown = await bench.text("read", path="broken.ipynb")
    assert shown.startswith("1\t" + text[:100].rstrip("\n"))
    await bench.text("edit", path="broken.ipynb", old_string="x = 1", new_string="x = 2")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
        ["cells", "cell_type", "source", "outputs", "output_type", "text", "data", "traceback", "ename", "image/png",
         "text/plain", "metadata", "kernelspec", "execution_count", "worksheets", "input"]), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip


@given(st.lists(JSON, max_size=4), JSON)
def test_b15_no_notebook_breaks_the_reader(cells: list[object], metadata: object) -> None:
    for key in ("cells", "worksheets"):
        data = json.dumps({"nbformat": 4, key: cells, "metadata": metadata}).encode()
        found = parse_notebook(Path("x.ipynb"), data)
        assert found is not None
        lines = notebook_lines(found)
        assert not any("\n" in line for line in lines)
        headers = [line for line in lines if line.startswith("--- cell ")]
        assert len(headers) >= len(found.cells)


async def test_b15_a_notebook_is_never_edited_as_its_cells(bench: Bench) -> None:
    path = bench.write("study.ipynb", notebook())
    before = path.read_bytes()
    edit = {"path": "study.ipynb", "old_string": "x = 1", "new_string": "x = 2"}
    assert "is a notebook" in await bench.error("edit", **edit)
    shown = await bench.text("read", path="study.ipynb")
    assert "is a notebook" in await bench.error("edit", **edit)
    assert "Give the whole JSON" in await bench.error("write", path="study.ipynb", content=shown)
    assert path.read_bytes() == before
    changed = before.replace(b"x = 1", b"x = 2").decode()
    await bench.text("write", path="study.ipynb", content=changed)
    assert path.read_text() == changed
    assert "Created" in await bench.text("write", path="new.ipynb", content=changed)
