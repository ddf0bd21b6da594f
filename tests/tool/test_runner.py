from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.budget import budget_for
from tenuto.config.settings import CompactionSettings, ToolSettings
from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import TodoView, ToolResultMessage
from tenuto.protocol.model import Family, ModelFacts, ToolSchema
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.text.bounding import result_ceiling
from tenuto.text.estimate import estimate_text
from tenuto.tool.output import StepBudget, ToolOutput, room_for_results, tokens_of
from tenuto.tool.run.arguments import build_schemas
from tenuto.tool.run.context import ToolContext
from tenuto.tool.run.registry import ToolRegistry, builtin_schemas
from tenuto.tool.run.runner import prepare
from tests.tool.support import Bench, make_bench


def test_the_prebuilt_schemas_are_the_models() -> None:
    prebuilt = [
        {
            "name": schema.name,
            "description": schema.description,
            "parameters": json.loads(bytes(schema.parameters)),
            **({"grammar": schema.grammar} if schema.grammar else {}),
        }
        for schema in builtin_schemas()
    ]
    assert prebuilt == build_schemas()


def test_the_schemas_stay_small() -> None:
    for family in get_args(Family):
        size = sum(
            len(schema.name) + len(schema.description) + len(bytes(schema.parameters))
            for schema in ToolRegistry().schemas(family)
        )
        assert size / 4 < 2_200


def test_b10_the_gpt_family_has_apply_patch_in_the_place_of_edit_and_write() -> None:
    registry = ToolRegistry()
    for family in get_args(Family):
        names = [schema.name for schema in registry.schemas(family)]
        assert names[:3] == (["read", "apply_patch", "bash"] if family == "gpt" else ["read", "write", "edit"])
        assert ("write" in names, "edit" in names) == (family != "gpt",) * 2
        assert registry.schemas(family) is registry.schemas(family)


def test_schemas_are_there_without_pydantic_httpx_or_any_tool() -> None:
    script = (
        "import sys\nfrom tenuto.tool.run.registry import ToolRegistry\n"
        "from tenuto.tool.run.context import ToolContext\n"
        "from tenuto.tool.run.runner import prepare\nassert len(ToolRegistry().schemas()) == 13\n"
        "heavy = {'pydantic', 'httpx', 'pathspec', 'tenuto.tool.bash', 'tenuto.tool.run.arguments'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ('{"path": "x"', "not valid JSON"),
        ("[1, 2]", "must be one JSON object, not list"),
        ('"text"', "must be one JSON object"),
        ("null", "must be one JSON object"),
        ("{}", "path: required and missing"),
        ('{"path": 5}', "path: Input should be a valid string (got 5)"),
        ('{"path": "x", "offset": 0}', "offset"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
async def test_r094_bad_arguments_run_nothing_and_are_explained(bench: Bench, arguments: str, part: str) -> None:
    result = await prepare(ToolCallPart(id="c", name="read", arguments=arguments), bench.registry, bench.context)
    assert isinstance(result, ToolResultMessage)
    text = text_of(result.parts)
    assert result.is_error
    assert part in text
    assert "read" in text
    assert len(text) < 1_000


async def test_r094_the_echo_is_bounded_and_clean(bench: Bench) -> None:
    call = ToolCallPart(id="c", name="write", arguments="\ud800" + "x" * 100_000, fault="cut off by the stream")
    result = await prepare(call, bench.registry, bench.context)
    assert isinstance(result, ToolResultMessage)
    text = text_of(result.parts)
    assert "cut off by the stream" in text
    assert len(text) < 1_000
    text.encode("utf-8")
    result = await bench.prepare("write", path="x", content=["y" * 100_000])
    assert isinstance(result, ToolResultMessage)
    assert len(text_of(result.parts)) < 1_000


async def test_an_unknown_tool_names_the_tools(bench: Bench) -> None:
    text = await bench.error("Read")
    assert "Did you mean read?" in text
    assert "bash, grep, glob" in text


async def test_names_from_elsewhere_extra_and_null_arguments_are_understood(bench: Bench) -> None:
    bench.write("f.txt", "a\n")
    assert await bench.text("read", file_path="f.txt", limit=None, why="curious", offset="1") == "1\ta"
    assert "hi" in await bench.text("bash", command="echo hi", description="Says hi")


class Rogue:
    """A tool that fails in ways of its own."""

    name = "rogue"
    parallel = True

    def parse(self, values: dict[str, Any]) -> Any:
        return values

    def subject(self, arguments: Any, context: ToolContext) -> ApprovalSubject:
        if arguments.get("at") == "subject":
            raise ZeroDivisionError("in subject")
        return ApprovalSubject(kind="none", tool=self.name, summary="")

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutput:
        if arguments.get("at") == "run":
            raise ZeroDivisionError("in run")
        if arguments.get("at") == "cancel":
            raise asyncio.CancelledError
        return ToolOutput(parts=(TextPart(text="x" * 100_000),))


ROGUE_SCHEMA = ToolSchema(name="rogue", description="", parameters=msgspec.Raw(b"{}"))


async def test_a_tool_that_raises_gives_an_error_result(bench: Bench) -> None:
    bench.registry.register(Rogue(), ROGUE_SCHEMA)
    assert "in subject (ZeroDivisionError)" in await bench.error("rogue", at="subject")
    assert "in run (ZeroDivisionError)" in await bench.error("rogue", at="run")
    with pytest.raises(asyncio.CancelledError):
        await bench.call("rogue", at="cancel")


async def test_registered_tools_are_listed_last_bounded_and_named_once(bench: Bench) -> None:
    bench.registry.register(Rogue(), ROGUE_SCHEMA)
    assert bench.registry.names()[-1] == "rogue" == bench.registry.schemas()[-1].name
    for name in ("rogue", "read"):
        tool = Rogue()
        tool.name = name
        with pytest.raises(ValueError, match=name):
            bench.registry.register(tool, ROGUE_SCHEMA)
    result = await bench.call("rogue")
    assert result.truncated
    assert len(text_of(result.parts)) < 31_000
    assert Path(result.output_path).read_text() == "x" * 100_000


async def test_every_builtin_tool_loads_and_says_what_it_is() -> None:
    registry = ToolRegistry()
    registry.warm_up()
    facts = {name: registry.get(name) for name in registry.names()}
    assert all(tool is not None and tool.name == name for name, tool in facts.items())
    assert {name for name, tool in facts.items() if tool and tool.parallel} == {
        "read",
        "grep",
        "glob",
        "fetch",
        "recall",
        "skill",
        "agent",
    }
    assert registry.get("nope") is None


async def test_todo_returns_the_list_as_a_view(bench: Bench) -> None:
    result = await bench.call("todo", items=[{"text": "a", "status": "done"}, {"text": "b"}])
    assert result.ui == (TodoView(items=(TodoItem(text="a", status="done"), TodoItem(text="b"))),)
    assert "1 done, 1 pending" in text_of(result.parts)
    assert "status" in await bench.error("todo", items=[{"text": "a", "status": "nonsense"}])


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("completed", "done"),
        ("Finished", "done"),
        ("in-progress", "in_progress"),
        ("In Progress", "in_progress"),
        ("doing", "in_progress"),
        ("not_started", "pending"),
        ("canceled", "cancelled"),
        ("skipped", "cancelled"),
    ],
)
async def test_todo_understands_the_words_of_other_agents(bench: Bench, word: str, status: str) -> None:
    items = [{"content": "a", "activeForm": "doing a", "status": word}, {"step": "b"}, "c"]
    result = await bench.call("todo", todos=items)
    assert [(item.text, item.status) for item in result.ui[0].items] == [
        ("a", status),
        ("b", "pending"),
        ("c", "pending"),
    ]


# --- rung 0 ---


KINDS = ("word ", "中文", "a1b2", "\n", "x")
"""Texts of different density."""


def result_of(text: str, number: int = 1) -> ToolResultMessage:
    return ToolResultMessage(call_id=f"c{number}", name="x", parts=(TextPart(text=text),))


@pytest.mark.parametrize(
    ("window", "ceiling"), [(None, 400_000), (1_000, 2_000), (8_000, 9_600), (200_000, 240_000), (1_000_000, 400_000)]
)
def test_rung_0_ceiling_of_one_result(window: int | None, ceiling: int) -> None:
    assert result_ceiling(window) == ceiling


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 20_000)), min_size=1, max_size=6),
    st.integers(2_000, 50_000),
    st.integers(0, 60_000),
    st.sampled_from([0.5, 1.0, 1.3, 4.0]),
)
def test_r098_a_step_never_exceeds_its_budget(
    kinds: list[tuple[str, int]], window: int, current: int, calibration: float
) -> None:
    stored: dict[str, str] = {}

    def store(name: str, text: str) -> Path:
        stored[name] = text
        return Path(f"/outputs/{name}")

    results = [result_of(kind * count, number) for number, (kind, count) in enumerate(kinds)]
    room = room_for_results(window, window * 3 // 4, current)
    budget = StepBudget(window=window, room=room, calls=len(results), calibration=calibration)
    bounded = [budget.bound(result, store) for result in results]
    assert 0 <= room <= max(window * 3 / 4 - current, (window - current) / 2, 0)
    assert room <= window / 2
    assert current + room <= max(window * 3 // 4, current + window // 8), "a full step stays under the trigger"
    notices = 350 * len(results)  # a notice and the ends that carry it, whatever the room
    assert sum(map(tokens_of, bounded)) <= room / calibration * 1.1 + notices
    for before, after in zip(results, bounded, strict=True):
        if after != before:
            assert after.truncated
            assert stored[after.call_id] == text_of(before.parts)
            assert after.output_path in text_of(after.parts)
            assert len(text_of(after.parts)) <= result_ceiling(window) + 300


@given(st.sampled_from(KINDS), st.floats(0, 0.3), st.integers(8_192, 400_000), st.floats(0, 0.75), st.data())
def test_t6_no_stub_while_a_quarter_of_the_window_is_free(
    kind: str, share: float, window: int, full: float, data: st.DataObject
) -> None:
    """truth.md T6: a result that the window could hold keeps a fifth of its length, wherever the trigger is."""
    trigger = data.draw(st.integers(window // 2, window))
    result = result_of(kind * int(100 * share * window / estimate_text(kind * 100)))
    room = room_for_results(window, trigger, int(full * window))
    bounded = StepBudget(window=window, room=room, calls=1).bound(result, lambda name, _: Path(name))
    assert len(text_of(bounded.parts)) >= min(len(text_of(result.parts)), result_ceiling(window)) / 5


@pytest.mark.parametrize("window", [8_192, 65_536, 128_000, 200_000, 1_000_000])
def test_t6_no_stub_where_a_step_reaches_the_trigger(window: int) -> None:
    """truth.md T6: at 200k a log of 30,000 characters came as 400 just before the view was made small."""
    budget = budget_for(ModelFacts(provider="p", name="m", context_window=window), CompactionSettings())
    log = "08:00:42 worker batch 570 took 223 ms\n" * 790
    room = room_for_results(window, budget.trigger, budget.trigger - 1)
    bounded = StepBudget(window=window, room=room, calls=1).bound(result_of(log), lambda name, _: Path(name))
    assert len(text_of(bounded.parts)) >= min(len(log), result_ceiling(window)) / 5


def test_what_one_result_leaves_the_others_may_use() -> None:
    budget = StepBudget(window=20_000, room=10_000, calls=3)
    store = lambda name, _: Path(name)  # noqa: E731
    results = [budget.bound(result_of(text), store) for text in ("tiny", "small", "word " * 4_000)]
    assert not any(result.truncated for result in results)
    assert sum(map(tokens_of, results)) > 10_000 / 3


def test_a_result_cut_twice_keeps_its_file_and_one_notice(tmp_path: Path) -> None:
    def store(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    wide, narrow = (StepBudget(window=window, room=None, calls=1) for window in (40_000, 8_000))
    once = wide.bound(result_of("head " + "word " * 40_000 + "tail"), store)
    twice = narrow.bound(once, store)
    text = text_of(twice.parts)
    assert (twice.output_path, twice.output_size) == (once.output_path, once.output_size)
    assert text.count("[…") == 1
    assert text.startswith("head")
    assert text.endswith("tail")
    assert len((tmp_path / "c1").read_text()) == 200_009
    assert estimate_text(text) < 4_000


async def test_settings_bound_a_result(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, ToolSettings(max_output_chars=3_000, max_output_lines=100))
    result = await bench.call("bash", command="seq 1 1000")
    assert result.truncated
    assert len(text_of(result.parts)) <= 3_000
    assert text_of(result.parts).count("\n") <= 100
