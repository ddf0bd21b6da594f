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
