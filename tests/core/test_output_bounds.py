"""Huge outputs through the whole agent: what the model gets, what stays on disk (R-074, R-097, R-098, T-41)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tenuto.protocol.event import CompactionStartEvent, ToolResultEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.text.estimate import estimate_text
from tests.core.compacting import is_summary_request, talk, words
from tests.core.harness import PROTOCOLS, Agent, agent
from tests.examples import one_of
from tests.server import Call, Reply, Request, ServerThread

MAX_RESULT = 30_000
"""Characters of one result (DESIGN section 6, rung 0)."""
TEN_MEGABYTES = "seq 1 1500000; echo THE END"


def results(running: Agent) -> list[ToolResultMessage]:
    return [event.message for event in running.of(ToolResultEvent)]


def sent_results(running: Agent) -> list[str]:
    return [item.text for item in running.server.requests[-1].items if item.kind == "result"]


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_r097_of_10_mb_the_model_gets_head_and_tail_counts_and_a_path_to_the_whole(
    tmp_path: Path, protocol: str
) -> None:
    script = [Reply(tool_calls=[Call("bash", {"command": TEN_MEGABYTES})]), Reply("done")]
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        assert (await running.ask("go")).outcome == "completed"
        (result,) = results(running)
        whole = "".join(f"{number}\n" for number in range(1, 1_500_001)) + "THE END\n"
        assert len(whole) > 10_000_000
        assert result.truncated
        assert result.output_size == len(whole)
        path = Path(result.output_path)
        assert path.read_text() == whole
        assert path.parent == running.session.store.outputs
        (sent,) = sent_results(running)
        assert sent.startswith("1\n2\n3\n")
        assert "1500000\nTHE END\n" in sent
        assert str(path) in sent
        assert len(sent) <= MAX_RESULT
        head, notice, tail = re.split(r"\n(\[… [^\n]*\])\n", sent)
        kept = head.count("\n") + 1 + tail.partition("THE END\n")[0].count("\n") + 1
        assert f"{1_500_001 - kept:,} lines" in notice
        log = running.session.directory / "events.jsonl"
        assert log.stat().st_size < 200_000, "the log holds what the model got"


def test_r097_10_mb_of_output_cost_the_program_no_memory(tmp_path: Path) -> None:
    def peak(command: str) -> int:
        """Run a headless agent whose model asks for `command`; return the program's largest size in kilobytes."""
        with ServerThread([Reply(tool_calls=[Call("bash", {"command": command})]), Reply("done")]) as server:
            home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
            arguments = ["-p", "go", "--mode", "auto", "--model", "openai-chat/test", "--cwd", str(tmp_path)]
            discard = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", "tenuto", *arguments],
                {**home, **server.environ()},
                file_actions=discard,
            )
            _, status, usage = os.wait4(pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert len(server.requests) == 2
        return usage.ru_maxrss

    assert peak(TEN_MEGABYTES) - peak("echo small") < 15_000


async def test_t41_r097_a_5_mb_line_through_read_grep_and_cat(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    line = '{"head":"' + "é" * 1_250_000 + "needle" + "ü" * 1_250_000 + '"}'
    (work / "big.json").write_text(line)
    size = len(line.encode())
    assert size > 5_000_000
    calls = [
        Call("read", {"path": "big.json"}),
        Call("grep", {"pattern": "needle"}),
        Call("bash", {"command": "cat big.json"}),
    ]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        assert (await running.ask("look")).outcome == "completed"
        assert [result.name for result in results(running)] == ["read", "grep", "bash"]
        for result, sent in zip(results(running), sent_results(running), strict=True):
            assert result.truncated, result.name
            assert result.output_path in sent
            assert line in Path(result.output_path).read_text() or Path(result.output_path).read_text() in line
            assert Path(result.output_path).stat().st_size >= size - 1
            assert len(sent) <= MAX_RESULT
            assert "\ufffd" not in sent
        shown, found, _ = sent_results(running)
        assert shown.startswith('1\t{"head":"éé')
        between = len(line) - 1_500 - 500
        assert f"é [… {between:,} more characters in this line …] ü" in shown
        assert 'ü"}\n' in shown
        assert "éneedleü" in found
        assert not running.server.requests[-1].refused
        assert len(running.server.requests[-1].raw) < 200_000


MAX_READ = 51_200
"""Characters of one result of `read` in a large window."""


def read_on(name: str):
    """A model that reads a file to its end, by the offsets that the results name."""

    def script(request: Request) -> Reply:
        results = [item.text for item in request.items if item.kind == "result"]
        if not results:
            return Reply(tool_calls=[Call("read", {"path": name})])
        ahead = re.search(r"go on with offset=(\d+)", results[-1])
        return Reply(tool_calls=[Call("read", {"path": name, "offset": int(ahead[1])})]) if ahead else Reply("done")

    return script


@pytest.mark.parametrize(
    ("options", "environ", "most", "reads"),
    [
        ({"window": 200_000}, {}, MAX_READ, 3),
        ({"models": ("another",)}, {}, MAX_READ, 3),
        ({"window": 127_999}, {}, MAX_RESULT, 5),
        ({"window": 200_000}, {"TENUTO_TOOLS__MAX_OUTPUT_CHARS": "30000"}, MAX_RESULT, 5),
        ({"window": 200_000}, {"TENUTO_TOOLS__MAX_OUTPUT_CHARS": "130000"}, 130_000, 1),
    ],
    ids=["200k", "assumed", "under 128k", "set to less", "set to more"],
)
async def test_b12_read_gives_more_where_the_window_is_large(
    tmp_path: Path, options: dict[str, object], environ: dict[str, str], most: int, reads: int
) -> None:
    lines = [f"{number:04} " + "x" * 69 for number in range(1, 1_501)]
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "long.txt").write_text("\n".join(lines))
    async with agent(tmp_path, read_on("long.txt"), options=options, environ=environ) as running:
        assert running.runtime.live.budget().known == ("window" in options)
        assert (await running.ask("read it")).outcome == "completed"
        sent = sent_results(running)
        assert len(sent) == reads
        assert most - 1_000 < len(sent[0]) <= most or reads == 1
        shown = [row.partition("\t")[2] for text in sent for row in text.split("\n") if "\t" in row]
        assert shown == lines, "each line once, in order"


async def test_b12_other_tools_keep_their_limit_in_a_large_window(tmp_path: Path) -> None:
    calls = [Call("bash", {"command": "seq 1 1900 | sed s/$/aaaaaaaaaaaaaaaaaaaaaaaaaa/"})]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")], options={"window": 200_000}) as running:
        await running.ask("go")
        (sent,) = sent_results(running)
        assert MAX_RESULT - 2_000 < len(sent) <= MAX_RESULT


@pytest.mark.parametrize("window", [128_000, 200_000])
async def test_b12_r098_twelve_large_reads_of_one_step_stay_within_its_room(tmp_path: Path, window: int) -> None:
    (tmp_path / "work").mkdir()
    for number in range(12):
        (tmp_path / "work" / f"{number}.txt").write_text(f"file {number}\n" + "some words of a long file\n" * 4_000)
    calls = [Call("read", {"path": f"{number}.txt"}) for number in range(12)]

    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")], options={"window": window}) as running:
        assert (await running.ask("read them all")).outcome == "completed"
        assert len(results(running)) == 12
        assert sum(estimate_text(text) for text in sent_results(running)) <= window / 2
        assert not running.of(CompactionStartEvent)
        assert not running.server.refusals


FAMILY = "👩\u200d👩\u200d👧"


async def test_r074_no_cut_through_a_grapheme(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "families.txt").write_text(FAMILY * 20_000)
    calls = [Call("bash", {"command": "cat families.txt"}), Call("read", {"path": "families.txt"})]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        await running.ask("look")
        for sent in sent_results(running):
            runs = re.findall(f"[{FAMILY}]+", sent)
            assert max(map(len, runs)) > 1_000
            for run in runs:
                assert run == FAMILY * (len(run) // len(FAMILY)), "whole families only"


WINDOW = 16_000


def make_files(work: Path) -> list[Call]:
    """Write six files that together are more than twice the window; return the calls that read them all."""
    work.mkdir()
    for number in range(6):
        (work / f"{number}.txt").write_text(f"file {number}\n" + "some words of a long file\n" * 990 + "the end\n")
    assert sum(path.stat().st_size for path in work.iterdir()) / 4 > 2 * WINDOW
    return [Call("read", {"path": f"{number}.txt"}) for number in range(6)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r098_a_step_that_alone_exceeds_the_window_is_cut_before_the_next_request(
    tmp_path: Path, protocol: str
) -> None:
    calls = make_files(tmp_path / "work")

    def script(request: Request) -> Reply:
        return Reply("done") if request.index else Reply(tool_calls=calls)

    async with agent(tmp_path, script, model=f"{protocol}/test", options={"window": WINDOW}) as running:
        assert running.runtime.live.facts.context_window == WINDOW
        settled = await running.ask("read them all")
        assert settled.outcome == "completed", settled.error
        assert not running.server.refusals, "neither the prompt nor the output that is asked for"
        assert not any(event.reason == "overflow" for event in running.of(CompactionStartEvent))
        texts = [text_of(result.parts) for result in results(running)]
        assert sum(map(estimate_text, texts)) < WINDOW / 2
        for number, (result, text) in enumerate(zip(results(running), texts, strict=True)):
            assert f"file {number}" in text
            assert "the end" in text
            if result.truncated:
                assert result.output_path in text
                assert "the end" in Path(result.output_path).read_text()
        assert any(result.truncated for result in results(running))


async def test_r098_a_full_step_leaves_the_context_under_the_trigger(tmp_path: Path) -> None:
    """Else a compaction would take away at once what the model has just asked for."""
    calls = make_files(tmp_path / "work")

    def script(request: Request) -> Reply:
        return Reply("done") if request.index else Reply(tool_calls=calls)

    async with agent(tmp_path, script, options={"window": WINDOW}) as running:
        assert (await running.ask("read them all")).outcome == "completed"
        assert not running.of(CompactionStartEvent)
        assert len(running.server.requests) == 2


@pytest.mark.parametrize("window", [16_384, 65_536])
@pytest.mark.parametrize("tool", ["bash", "recall"])
async def test_t6_a_result_just_before_a_compaction_is_no_stub(tmp_path: Path, window: int, tool: str) -> None:
    """truth.md T6: 12 514 bytes became 461 characters with 16 000 tokens free, and the compaction kept the stub."""
    calls = {
        "bash": Call("bash", {"command": "seq 1 700"}),
        "recall": Call("recall", {"query": "planted", "limit": 100}),
    }

    def step(request: Request) -> Reply:
        is_due = request.last_user.startswith("look now") and request.items[-1].kind != "result"
        return Reply("as you say", tool_calls=[calls[tool]] if is_due else [])

    async with agent(tmp_path, talk(step), options={"window": window}) as running:
        live = running.runtime.live

        def room() -> int:
            return live.budget().trigger - live.measure().tokens

        for number in range(25):
            await running.ask(f"planted {number} of many here " + "and " * 30)
        while room() > 900:
            await running.ask(words((room() - 500) // 2))
        assert not running.of(CompactionStartEvent)
        assert (await running.ask("look now")).outcome == "completed"
        (result,) = results(running)
        assert not result.truncated
        assert estimate_text(text_of(result.parts)) > 1_000, "more than the trigger leaves"
        assert [event.reason for event in running.of(CompactionStartEvent)] == ["threshold"]
        last = [request for request in running.server.requests if not is_summary_request(request)][-1]
        (sent,) = [item.text for item in last.items if item.kind == "result"]
        assert sent.startswith(text_of(result.parts)), "the compaction keeps it whole"
        assert not running.server.refusals
