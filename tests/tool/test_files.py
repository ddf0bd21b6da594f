from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from tenuto.guard.approval import judge
from tenuto.guard.subject import Allow, Ask
from tenuto.protocol.message import DiffView, LinesView
from tenuto.protocol.part import ImagePart, text_of
from tenuto.tool.image import image_facts
from tenuto.tool.run.runner import PreparedCall, run_call
from tests.tool.support import Bench, make_bench

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"


async def test_read_numbers_lines_and_pages(bench: Bench) -> None:
    bench.write("f.txt", "".join(f"line {number}\n" for number in range(1, 101)))
    assert await bench.text("read", path="f.txt", offset=99) == "99\tline 99\n100\tline 100"
    result = await bench.call("read", path="f.txt", offset=5, limit=2)
    text = text_of(result.parts)
    assert result.ui == (LinesView(count=2),)
    assert text.startswith("5\tline 5\n6\tline 6\n")
    assert "94 more lines of 100; go on with offset=7" in text
    assert "past its end" in await bench.error("read", path="f.txt", offset=101)


async def test_read_of_a_long_file_says_how_to_read_on_and_every_line_is_reached(bench: Bench) -> None:
    lines = [f"{number} " + "x" * 60 for number in range(3000)]
    path = bench.write("f.txt", "\n".join(lines))
    seen: list[str] = []
    offset = 1
    while offset <= 3000:
        result = await bench.call("read", path="f.txt", offset=offset)
        text = text_of(result.parts)
        assert len(text) <= 30_000
        rows = [row.split("\t", 1)[1] for row in text.split("\n") if "\t" in row]
        seen += rows
        offset += len(rows)
        assert result.truncated == (offset <= 3000)
        assert (result.output_path == str(path)) == result.truncated
    assert seen == lines


async def test_t41_a_5_mb_line_is_bounded(bench: Bench) -> None:
    path = bench.write("big.json", '{"a":"' + "x" * 2_500_000 + "needle" + "y" * 2_500_000 + '"}')
    for name, arguments in (
        ("read", {"path": "big.json"}),
        ("grep", {"pattern": "needle"}),
        ("bash", {"command": "cat big.json"}),
    ):
        result = await bench.call(name, **arguments)
        text = text_of(result.parts)
        assert result.truncated, name
        assert len(text) <= 30_000
        assert Path(result.output_path).stat().st_size >= path.stat().st_size
        assert result.output_size >= path.stat().st_size
    assert "needle" in text_of((await bench.call("grep", pattern="needle")).parts)


async def test_read_of_a_file_too_large_to_hold(bench: Bench) -> None:
    path = bench.work / "huge.log"
    with path.open("wb") as file:
        file.write(b"first\n" + "ä".encode() * 20_000_000 + b"the end\r\nthird\n")
    text = await bench.text("read", path="huge.log")
    assert text.startswith("1\tfirst\n2\täää")
    assert f"ä [… {40_000_000 - 2 * 1_500 - 2 * 493:,} more bytes in this line …] ä" in text
    assert "äthe end\n3\tthird" in text
    assert "3\tthird" in await bench.text("read", path="huge.log", offset=3)
    assert "fewer than" in await bench.error("read", path="huge.log", offset=9)


async def test_read_shows_images_by_their_content(bench: Bench) -> None:
    bench.write("picture.txt", PNG)
    result = await bench.call("read", path="picture.txt")
    part = result.parts[1]
    assert isinstance(part, ImagePart)
    assert (part.media_type, part.width, part.height, part.size) == ("image/png", 640, 480, len(PNG))
    assert (bench.session.store.blobs / part.sha256).read_bytes() == PNG
    bench.write("huge.png", PNG + b"\0" * 4_000_000)
    assert "smaller copy" in await bench.error("read", path="huge.png")


def test_image_sizes() -> None:
    jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 48, 64) + b"\0" * 9
    gif = b"GIF89a" + struct.pack("<HH", 3, 4)
    webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (9).to_bytes(3, "little") + (19).to_bytes(3, "little")
    found = [image_facts(data) for data in (PNG, jpeg, gif, webp, b"text", b"\x89PNG\r\n\x1a\n")]
    assert [(f.media_type, f.width, f.height) if f else None for f in found] == [
        ("image/png", 640, 480), ("image/jpeg", 64, 48), ("image/gif", 3, 4), ("image/webp", 10, 20), None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "part"),
    [(b"\x7fELF\0\0\0", "binary"), (b"%PDF-1.4\n\x00\x01", "pdftotext"), (b"\x80\x01\x02\x03\x04" * 50, "binary")],
)
async def test_read_refuses_binary_files_clearly(bench: Bench, data: bytes, part: str) -> None:
    bench.write("f", data)
    assert part in await bench.error("read", path="f")


async def test_read_lists_directories_and_hints_at_names(bench: Bench) -> None:
    bench.write("src/settings.py", "")
    bench.write("src/sub/x", "")
    assert (await bench.text("read", path="src")).endswith("/src/\nsettings.py\nsub/")
    assert "Did you mean src/settings.py" in await bench.error("read", path="src/setting.py")
    assert await bench.text("read", path="src/settings.py") == "(the file is empty)"


async def test_read_does_not_hang_on_a_pipe(bench: Bench) -> None:
    os.mkfifo(bench.work / "pipe")
    assert "regular file" in await bench.error("read", path="pipe")
    assert "regular file" in await bench.error("grep", path="pipe", pattern="x")
    bench.context.files.record(_use(bench.work / "pipe"))
    assert "regular file" in await bench.error("write", path="pipe", content="x")


def _use(path: Path):
    from tenuto.protocol.message import FileUse

    return FileUse(path=str(path), op="read", sha256="0")


async def test_t30_results_can_always_be_sent(bench: Bench) -> None:
    bench.write("f.txt", b"a\x00b" + "ü".encode("utf-16-le"))
    result = await bench.call("bash", command="printf 'a\\000b\\355\\240\\200c'; printf '\\360\\237\\230'")
    text = text_of(result.parts)
    assert "\0" not in text
    text.encode("utf-8")


async def test_read_says_what_is_unusual_about_a_file(bench: Bench) -> None:
    bench.write("f.txt", "中文测试\r\n".encode("gbk"))
    text = await bench.text("read", path="f.txt")
    assert text.startswith("1\t中文测试\n")
    assert "gb18030, CRLF" in text


async def test_write_creates_directories_and_refuses_to_overwrite_the_unseen(bench: Bench) -> None:
    result = await bench.call("write", path="a/b/c.txt", content="hello\n")
    assert (bench.work / "a/b/c.txt").read_text() == "hello\n"
    assert result.ui == (DiffView(path="a/b/c.txt", diff="@@ -0,0 +1,1 @@\n+hello", added=1, created=True),)
    await bench.text("write", path="a/b/c.txt", content="mine\n")
    bench.write("theirs.txt", "precious\n")
    assert "have not read it" in await bench.error("write", path="theirs.txt", content="x")
    await bench.text("read", path="theirs.txt")
    bench.write("theirs.txt", "changed\n")
    assert "+changed" in await bench.error("write", path="theirs.txt", content="x")
    assert (bench.work / "theirs.txt").read_text() == "changed\n"
    assert "is a file" in await bench.error("write", path="theirs.txt/x", content="x")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nc\n", b"\xef\xbb\xbfa\r\nc\r\n"),
        (b"a\r\nb\nc\n", "a\nx\nc\n", b"a\r\nx\nc\n"),
        ("ü\r\n".encode("utf-16"), "ö\n", "ö\r\n".encode("utf-16")),
        ("café\n".encode("latin-1"), "naïve\n", "naïve\n".encode("latin-1")),
        (b"a\n", "b", b"b"),
    ],
)
async def test_r089_write_keeps_encoding_and_line_ends(bench: Bench, before: bytes, content: str, after: bytes) -> None:
    path = bench.write("f.txt", before)
    await bench.text("read", path="f.txt")
    await bench.text("write", path="f.txt", content=content)
    assert path.read_bytes() == after


async def test_a_new_file_has_the_usual_mode_and_no_leftovers(bench: Bench) -> None:
    umask = os.umask(0o027)
    try:
        await bench.text("write", path="f.txt", content="x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((bench.work / "f.txt").stat().st_mode) == 0o640
    assert os.listdir(bench.work) == ["f.txt"]


async def test_a_read_only_file_stays_as_it_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("f.txt", "a\n")
    path.chmod(0o444)
    await bench.text("read", path="f.txt")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    assert "read-only" in await bench.error("edit", path="f.txt", old_string="a", new_string="b")
    assert path.read_text() == "a\n"


async def test_r087_t38_links_are_judged_by_where_they_lead(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("a\n")
    bench.write("in/f.txt", "a\n")
    bench.write("plain.txt", "a\n")
    (bench.work / "dir_out").symlink_to(outside)
    (bench.work / "dir_in").symlink_to(bench.work / "in")
    (bench.work / "file_out").symlink_to(outside / "f.txt")
    (bench.work / "chain").symlink_to(bench.work / "file_out")
    (bench.work / "file_in").symlink_to("in/f.txt")
    (bench.work / "dangling_out").symlink_to(outside / "new.txt")
    (bench.work / "dangling_in").symlink_to("in/new.txt")
    (bench.work / "hard_out").hardlink_to(outside / "f.txt")
    (bench.work / "hard_in").hardlink_to(bench.work / "plain.txt")
    expected = {
        "dir_out/new.txt": Ask, "dangling_out": Ask, "in/../../outside/x": Ask, str(outside / "y"): Ask,
        "dir_in/new.txt": Allow, "dangling_in": Allow, "in/../z": Allow,
    }  # fmt: skip
    for name, verdict in expected.items():
        prepared = await bench.prepare("write", path=name, content="x")
        assert isinstance(prepared, PreparedCall), name
        assert type(judge("edits", prepared.subject, [], bench.context.places)) is verdict, name
    edits = {"file_out": Ask, "chain": Ask, "hard_out": Ask, "hard_in": Allow, "file_in": Allow, "dir_in/f.txt": Allow}
    for name, verdict in edits.items():
        prepared = await bench.prepare("edit", path=name, old_string="a", new_string="b")
        assert isinstance(prepared, PreparedCall), name
        assert type(judge("edits", prepared.subject, [], bench.context.places)) is verdict, name
    reads = {"file_out": Ask, "dir_out": Ask, "hard_out": Ask, "hard_in": Allow, "file_in": Allow, "in/f.txt": Allow}
    for name, verdict in reads.items():
        prepared = await bench.prepare("read", path=name)
        assert isinstance(prepared, PreparedCall), name
        assert type(judge("ask", prepared.subject, [], bench.context.places)) is verdict, name


async def test_s11_nothing_reads_what_was_not_looked_at_when_it_was_allowed(tmp_path: Path) -> None:
    """A hard link to a file outside asks; a link that is moved between the answer and the call gives nothing."""
    bench = make_bench(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f.txt").write_text("needle\n")
    bench.write("in/f.txt", "harmless\n")
    (bench.work / "hard").hardlink_to(tmp_path / "outside" / "f.txt")
    for tool, arguments in (("read", {}), ("grep", {"pattern": "needle"})):
        prepared = await bench.prepare(tool, path="hard", **arguments)
        assert isinstance(prepared, PreparedCall)
        assert isinstance(judge("auto", prepared.subject, [], bench.context.places), Ask)
    calls = {"read": {"path": "d/f.txt"}, "grep": {"path": "d", "pattern": "n"}, "glob": {"path": "d", "pattern": "*"}}
    for tool, arguments in calls.items():
        link = bench.work / "d"
        link.unlink(missing_ok=True)
        link.symlink_to("in")
        prepared = await bench.prepare(tool, **arguments)
        assert isinstance(prepared, PreparedCall)
        assert isinstance(judge("ask", prepared.subject, [], bench.context.places), Allow)
        link.unlink()
        link.symlink_to("../outside")
        result = await run_call(prepared, bench.context, emit=bench.live.append)
        assert result.is_error and "somewhere else" in text_of(result.parts), tool


async def test_s9_writing_what_runs_code_or_is_obeyed_is_asked_for(bench: Bench) -> None:
    names = (".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".tenuto/settings.toml", "AGENTS.md", ".envrc")
    for name in (*names, ".github/workflows/x.yml", ".vscode/tasks.json", ".GIT/hooks/x", "sub/claude.MD"):
        prepared = await bench.prepare("write", path=name, content="x")
        assert isinstance(prepared, PreparedCall)
        for mode in ("ask", "edits", "auto"):
            assert isinstance(judge(mode, prepared.subject, [], bench.context.places), Ask), name
    prepared = await bench.prepare("write", path=".github/x.yml", content="x")
    assert isinstance(prepared, PreparedCall)
    assert isinstance(judge("edits", prepared.subject, [], bench.context.places), Allow)


async def test_stored_outputs_may_be_read_unasked(bench: Bench) -> None:
    result = await bench.call("bash", command="seq 1 9000")
    prepared = await bench.prepare("read", path=result.output_path, offset=4000, limit=1)
    assert isinstance(prepared, PreparedCall)
    assert isinstance(judge("ask", prepared.subject, [], bench.context.places), Allow)
    assert (await bench.text("read", path=result.output_path, offset=4000, limit=1)).startswith("4000\t4000")


async def test_changes_are_shown_with_paths_as_users_read_them(bench: Bench, tmp_path: Path) -> None:
    """In the workspace relative, however the model names them, and outside of it whole."""
    inside, outside = bench.write("lib/f.py", "a\n"), tmp_path / "other" / "g.py"
    patch = "*** Begin Patch\n*** Update File: {}\n@@\n-b\n+c\n*** Add File: {}\n+x\n*** End Patch"
    calls = [
        ("edit", {"path": str(inside), "old_string": "a", "new_string": "b"}, ["lib/f.py"]),
        ("apply_patch", {"input": patch.format(inside, outside)}, ["lib/f.py", str(outside)]),
        ("write", {"path": str(inside), "content": "d\n"}, ["lib/f.py"]),
        ("write", {"path": str(outside), "content": "d\n"}, [str(outside)]),
    ]
    for name, arguments, shown in calls:
        prepared = await bench.prepare(name, **arguments)
        assert isinstance(prepared, PreparedCall)
        assert [diff.path for diff in prepared.subject.diffs] == shown
        result = await run_call(prepared, bench.context, emit=lambda _: None)
        assert [view.path for view in result.ui if isinstance(view, DiffView)] == shown
        assert [use.path for use in result.files] == [str(bench.work / path) for path in shown]
