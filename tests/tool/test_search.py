from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenuto.protocol.message import FoundView
from tenuto.protocol.part import text_of
from tenuto.tool.run.context import ToolError
from tenuto.tool.search import ripgrep, search
from tenuto.tool.search.patterns import expand_braces, fits, path_matcher
from tenuto.tool.search.search import Walker
from tests.tool.support import Bench


@pytest.fixture(params=["ripgrep", "own"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test here holds with ripgrep and without."""
    import shutil

    if request.param == "own":
        monkeypatch.setattr(ripgrep.shutil, "which", lambda _: None)
    elif shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    return request.param


@pytest.fixture
def tree(bench: Bench) -> Bench:
    bench.write("a.py", "import os\nneedle = 1\nx\ny\nz\nNeedle(needle)\n")
    bench.write("src/deep/b.ts", "const needle = 2;\r\n")
    bench.write("src/c.tsx", "no\n")
    bench.write(".github/d.yml", "needle: 3\n")
    bench.write(".gitignore", "*.log\n/out/\n!keep.log\n")
    bench.write("src/.gitignore", "gen/\n")
    bench.write("x.log", "needle\n")
    bench.write("keep.log", "needle kept\n")
    bench.write("out/e.py", "needle\n")
    bench.write("src/gen/f.py", "needle\n")
    bench.write(".git/config", "needle\n")
    bench.write("bin.dat", b"needle\0\x01")
    return bench


async def test_grep_shows_lines_by_file_and_honours_ignore_files(tree: Bench, source: str) -> None:
    assert await tree.text("grep", pattern="needle") == (
        ".github/d.yml\n1:needle: 3\na.py\n2:needle = 1\n6:Needle(needle)\nkeep.log\n1:needle kept\n"
        "src/deep/b.ts\n1:const needle = 2;"
    )


async def test_grep_options(tree: Bench, source: str) -> None:
    assert await tree.text("grep", pattern="needle", output="count", glob="*.{py,ts}") == "a.py: 2\nsrc/deep/b.ts: 1"
    assert await tree.text("grep", pattern="needle", output="files", glob="src/**/*.ts") == "src/deep/b.ts"
    assert await tree.text("grep", pattern="needle", path="src") == "src/deep/b.ts\n1:const needle = 2;"
    assert await tree.text("grep", pattern="NEEDLE", path="a.py", ignore_case=True, output="count") == "a.py: 2"
    assert await tree.text("grep", pattern="Needle(", path="a.py", literal=True) == "a.py\n6:Needle(needle)"
    assert await tree.text("grep", pattern="^needle|Needle", path="a.py", context=1) == (
        "a.py\n1-import os\n2:needle = 1\n3-x\n--\n5-z\n6:Needle(needle)"
    )
    assert await tree.text("grep", pattern=r"needle(?= = 2)") == "src/deep/b.ts\n1:const needle = 2;"
    assert await tree.text("grep", pattern="absent") == "No matches."
    assert await tree.text("grep", pattern="-needle") == "No matches."


async def test_how_much_was_found_is_told_to_the_screen(tree: Bench, source: str) -> None:
    for asked, view in (
        ({}, FoundView(files=4, lines=5)),
        ({"output": "files"}, FoundView(files=4)),
        ({"output": "count", "path": "src"}, FoundView(files=1)),
        ({"path": "bin.dat"}, FoundView()),
    ):
        assert (await tree.call("grep", pattern="needle", **asked)).ui == (view,)
    assert (await tree.call("glob", pattern="*.py")).ui == (FoundView(files=1),)
    assert (await tree.call("glob", pattern="*.rs")).ui == (FoundView(),)


async def test_grep_errors_say_what_is_wrong(tree: Bench, source: str) -> None:
    assert "could not be done" in await tree.error("grep", pattern="((")
    assert "does not exist" in await tree.error("grep", pattern="x", path="nope")


async def test_grep_limits_name_the_totals_and_where_all_of_it_is(bench: Bench, source: str) -> None:
    bench.write("f.txt", "".join(f"hit {number}\n" for number in range(1000)))
    result = await bench.call("grep", pattern="hit", limit=10)
    text = text_of(result.parts)
    assert result.truncated
    assert "10:hit 9\n[" in text
    assert "11:" not in text
    assert "1,000 matching lines in 1 files" in text
    assert result.ui == (FoundView(files=1, lines=1_000, partial=True),)
    assert Path(result.output_path).read_text().splitlines()[-1] == "f.txt:1000:hit 999"


async def test_r097_a_long_line_is_shown_around_its_match(bench: Bench, source: str) -> None:
    bench.write("f.json", "é" * 1_000_000 + "needle" + "ü" * 1_000_000)
    result = await bench.call("grep", pattern="needle")
    text = text_of(result.parts)
    assert result.truncated
    assert len(text) < 1_500
    assert "éneedleü" in text
    assert "[999,900 more]" in text
    assert Path(result.output_path).stat().st_size > 4_000_000


async def test_glob_finds_by_name_newest_first(tree: Bench, source: str) -> None:
    for number, name in enumerate(["a.py", "src/c.tsx", "src/deep/b.ts"]):
        os.utime(tree.work / name, (1000 + number, 1000 + number))
    assert await tree.text("glob", pattern="*.{py,ts,tsx}") == "src/deep/b.ts\nsrc/c.tsx\na.py"
    assert await tree.text("glob", pattern="src/*.tsx") == "src/c.tsx"
    assert await tree.text("glob", pattern="**/*.ts", path="src") == "src/deep/b.ts"
    assert await tree.text("glob", pattern="*.yml") == ".github/d.yml"
    assert await tree.text("glob", pattern="*.rs") == "No files match."
    assert "not a directory" in await tree.error("glob", pattern="*", path="a.py")


async def test_glob_limit_keeps_the_whole_list(bench: Bench, source: str) -> None:
    for number in range(30):
        bench.write(f"f{number}.txt", "")
    result = await bench.call("glob", pattern="*.txt", limit=5)
    assert result.truncated
    assert "[The 5 newest of 30 files" in text_of(result.parts)
    assert result.ui == (FoundView(files=30, partial=True),)
    assert len(Path(result.output_path).read_text().splitlines()) == 30


async def test_links_out_of_the_tree_are_not_followed(bench: Bench, source: str) -> None:
    outside = bench.work.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    (bench.work / "link").symlink_to(outside)
    (bench.work / "file").symlink_to(outside / "secret.txt")
    assert await bench.text("grep", pattern="needle") == "No matches."
    assert await bench.text("glob", pattern="*.txt") == "No files match."


async def test_a_cancelled_search_leaves_nothing_behind(bench: Bench) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()

    def work(stop: search.Stop) -> None:
        loop.call_soon_threadsafe(begun.set)
        while not stop.is_due():
            pass
        loop.call_soon_threadsafe(stopped.set)

    task = asyncio.ensure_future(search.run_stoppable(work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(stopped.wait(), 20)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".a.py"], ["a.pyc", "py"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("**/test_*", ["test_a", "x/test_b"], ["x/atest_"]),
        ("src/", ["src/a", "src/b/c"], ["src"]),
        ("./a?.[ch]", ["ab.c", "ac.h"], ["a.c", "abc.c", "ab.d"]),
        ("[!a].txt", ["b.txt"], ["a.txt", "/.txt"]),
        ("{a,b{1,2}}.x", ["a.x", "b1.x", "b2.x"], ["b.x"]),
        ("a+b(c).x", ["a+b(c).x"], ["aab(c).x"]),
        ("[", ["["], ["a"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = path_matcher(pattern)
    assert [name for name in [*yes, *no] if matches(name)] == yes


def meaning(parts: list[str]) -> str:
    """Return a regular expression that says what a pattern means, however slowly."""
    whole = ""
    for index, part in enumerate(parts):
        if part == "**":
            whole += "(?:[^/]+/)*[^/]+" if index == len(parts) - 1 else "(?:[^/]+/)*"
        else:
            name = "".join({"*": "[^/]*", "?": "[^/]", "a": "a", "b": "b", ".": r"\."}.get(mark, mark) for mark in part)
            whole += name + ("" if index == len(parts) - 1 else "/")
    return whole


@given(
    st.lists(st.one_of(st.just("**"), st.text("ab*?.", min_size=1, max_size=4)), min_size=2, max_size=5),
    st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_b15_property_a_pattern_means_what_it_says(parts: list[str], names: list[str]) -> None:
    path, pattern = "/".join(names), "/".join(parts)
    wanted = re.fullmatch(meaning(parts), path) is not None
    assert fits(parts, names) == wanted
    if "." not in pattern.split("/") and ".." not in pattern.split("/"):
        assert path_matcher(pattern)(path) == wanted


@given(st.text("ab*?[]!-", min_size=1, max_size=6), st.text("ab-]", min_size=1, max_size=5))
def test_b15_property_within_a_name_it_is_fnmatch(pattern: str, name: str) -> None:
    assume(pattern != "**")
    assert path_matcher(pattern)(name) == path_matcher(pattern)(f"x/{name}") == fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 40 + "b", "a" * 200),
        ("**/*a" * 20 + "b", "/".join(["a" * 9] * 60)),
        ("**/a/" * 30 + "b", "a/" * 120 + "c"),
        ("/".join(["**"] * 60) + "/b", "a/" * 120 + "c"),
        ("?*" * 40 + "b", "a" * 200),
        ("x{a,*}{a,*}{a,*}{a,*}{a,*}{a,*}b", "x" + "a" * 2_000),
    ],
)
def test_b15_no_pattern_takes_for_ever(pattern: str, path: str) -> None:
    program = f"from tenuto.tool.search.patterns import path_matcher\nassert not path_matcher({pattern!r})({path!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_patterns_that_lead_elsewhere_or_explode_are_refused() -> None:
    for pattern in ("/etc/*", "../x", "a/../../x", "~/x", ""):
        with pytest.raises(ToolError):
            path_matcher(pattern)
    with pytest.raises(ToolError):
        expand_braces("{a,b}" * 20)


def test_s3_ignore_files_are_regular_files_of_their_directory(tmp_path: Path) -> None:
    """security.md S3, the same class: a pipe is not waited for, and a link out of the project says nothing."""
    (tmp_path / "outside").write_text("*.py\n")
    base = tmp_path / "work"
    (base / "sub").mkdir(parents=True)
    os.mkfifo(base / ".gitignore")
    (base / ".ignore").symlink_to("/dev/zero")
    (base / "sub" / ".gitignore").symlink_to("../../outside")
    (base / "sub" / "a.py").write_text("x")
    assert list(Walker().files(base, search.Stop())) == ["sub/a.py"]
