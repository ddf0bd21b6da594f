"""`write` in parts: what an answer is too short for is put together from several calls (B2)."""

from __future__ import annotations

import pytest

from tenuto.tool.edits.encoding import decode_file
from tests.core.harness import agent
from tests.server import Call, Reply


def calls(*steps: Call):
    left = list(steps)
    return lambda _request: Reply(tool_calls=[left.pop(0)]) if left else Reply("done")


def write(content: str, **more: object) -> Call:
    return Call("write", {"path": "long.txt", "content": content, **more})


async def run(tmp_path, *steps: Call):
    async with agent(tmp_path, calls(*steps)) as running:
        await running.ask("write it")
        return [item.text for item in running.server.requests[-1].items if item.kind == "result"]


async def test_b2_a_file_is_written_in_parts(tmp_path):
    results = await run(tmp_path, write("one\n"), write("two\n", append=True), write("three", append=True))
    assert (tmp_path / "work" / "long.txt").read_text() == "one\ntwo\nthree"
    assert results[0].startswith("Created")
    assert results[1].startswith("Extended (+1 −0) long.txt: 2 lines, 8 bytes")


async def test_appending_to_no_file_creates_it(tmp_path):
    await run(tmp_path, write("first\n", append=True))
    assert (tmp_path / "work" / "long.txt").read_text() == "first\n"


async def test_a_file_that_was_not_read_is_not_extended(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "long.txt").write_text("mine\n")
    (result,) = await run(tmp_path, write("more\n", append=True))
    assert "you have not read it" in result
    assert (tmp_path / "work" / "long.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nb\r\nc\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfa\nc\nd\n"),
        ("ü\n".encode("utf-16"), "ü\nc\nd\n".encode("utf-16")),
    ],
    ids=["CR LF", "BOM", "UTF-16"],
)
async def test_line_ends_and_encoding_stay(tmp_path, before, after):
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "long.txt"
    file.write_bytes(before)
    if decode_file(before) is None:
        pytest.skip("this encoding is not known")
    await run(tmp_path, Call("read", {"path": "long.txt"}), write("c\nd\n", append=True))
    assert file.read_bytes() == after
