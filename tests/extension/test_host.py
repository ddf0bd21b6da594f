"""Loaded extensions: asked in order, and never in the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tenuto.config.settings import ExtensionSettings
from tenuto.extension.finding import find_extensions
from tenuto.extension.host import ExtensionHost, read_answer
from tenuto.protocol.hooks import (
    BeforeCompactAnswer,
    BeforeTreeAnswer,
    CompactionPreparation,
    FileOps,
    PreparationSettings,
    SessionBeforeCompact,
    SessionBeforeTree,
    SessionCompactFailed,
    SuppliedCompaction,
    TreePreparation,
)

PLACE = {"session_id": "s", "cwd": "/somewhere"}
PREPARATION = CompactionPreparation(
    messages_to_summarize=(),
    turn_prefix_messages=(),
    is_split_turn=False,
    previous_summary="",
    file_ops=FileOps(),
    tokens_before=1_000,
    first_kept_index=7,
    settings=PreparationSettings(enabled=True, reserve_tokens=1, keep_recent_tokens=2, max_summary_tokens=3),
)
BEFORE_COMPACT = SessionBeforeCompact(
    **PLACE,
    preparation=PREPARATION,
    branch_entries=(),
    custom_instructions="",
    reason="manual",
    will_retry=False,
)
BEFORE_TREE = SessionBeforeTree(
    **PLACE,
    preparation=TreePreparation(
        target=3, old_leaf=9, common_ancestor=3, entries_to_summarize=(), user_wants_summary=True
    ),
)
FAILED = SessionCompactFailed(**PLACE, reason="manual", error="no", aborted=False, will_retry=False, tokens_before=5)


class Loaded:
    """A host with extensions from files, and what it told the user."""

    def __init__(self, host: ExtensionHost, said: list[str], faults: list[str]) -> None:
        self.host = host
        self.said = said
        self.faults = faults
        self.asked: list[str] = []

    async def before_compact(self):
        return await self.host.ask_before_compact(BEFORE_COMPACT, self.asked.append)

    async def until_said(self, text: str) -> None:
        async with asyncio.timeout(60):
            while text not in self.said:
                await asyncio.sleep(0.005)


@pytest.fixture
async def load(tmp_path: Path):
    hosts: list[ExtensionHost] = []

    async def load(timeout: float = 20, **files: str) -> Loaded:
        for name, text in files.items():
            path = tmp_path / "extensions" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        said: list[str] = []
        faults: list[str] = []
        host = ExtensionHost(
            lambda text, level: said.append(f"{level} {text}"), faults.append, timeout, load_timeout=timeout
        )
        hosts.append(host)
        await host.load(find_extensions(tmp_path, ExtensionSettings()).sources)
        return Loaded(host, said, faults)

    yield load
    for host in hosts:
        await host.close()


def answering(answer: str) -> str:
    return f"def setup(tenuto):\n    tenuto.on('session_before_compact', lambda event: {answer})\n"


async def test_answers_come_in_order_as_dicts_or_structs_and_none_is_none(load):
    loaded = await load(
        a=answering("{'add_focus': 'one'}"),
        b=answering("None"),
        c="from tenuto.protocol.hooks import BeforeCompactAnswer\n" + answering("BeforeCompactAnswer(add_text='two')"),
    )
    answers = await loaded.before_compact()
    assert [(named.extension, named.answer.add_focus, named.answer.add_text) for named in answers] == [
        ("a", "one", ""),
        ("c", "", "two"),
    ]
    assert loaded.asked == ["a", "b", "c"]
    assert loaded.faults == []


async def test_async_handlers_decorators_and_several_handlers_of_one_extension(load):
    loaded = await load(
        a="""
import asyncio

async def setup(tenuto):
    await asyncio.sleep(0)

    @tenuto.on("session_before_compact")
    async def first(event):
        await asyncio.sleep(0.001)
        return {"add_focus": f"first {event.preparation.first_kept_index}"}

    @tenuto.on("session_before_compact")
    def second(event):
        return {"add_focus": f"second {event.reason}"}
"""
    )
    answers = await loaded.before_compact()
    assert [named.answer.add_focus for named in answers] == ["first 7", "second manual"]


async def test_a_cancel_ends_the_asking(load):
    loaded = await load(a=answering("{'cancel': True, 'cancel_reason': 'not now'}"), b=answering("{'add_text': 'x'}"))
    answers = await loaded.before_compact()
    assert [(named.extension, named.answer.cancel_reason) for named in answers] == [("a", "not now")]
    assert loaded.asked == ["a"]


async def test_a_throwing_handler_is_named_once_and_the_others_are_asked(load):
    loaded = await load(a=answering("[][3]"), b=answering("{'add_text': 'x'}"))
    for _ in range(3):
        assert [named.extension for named in await loaded.before_compact()] == ["b"]
    assert loaded.faults == [
        "The extension a failed in session_before_compact: IndexError: list index out of range (a.py:2)"
    ]


async def test_a_fault_deep_in_a_library_names_the_place_and_stays_one_short_line(load):
    loaded = await load(
        a="def setup(tenuto):\n    @tenuto.on('session_before_compact')\n    def ask(event):\n"
        "        raise ValueError('line\\n' * 1000)\n"
    )
    await loaded.before_compact()
    assert len(loaded.faults) == 1
    assert "\n" not in loaded.faults[0]
    assert len(loaded.faults[0]) < 500
    assert loaded.faults[0].endswith("(a.py:4)")


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("True", "bool"),
        ("{'cancle': True}", "cancle"),
        ("{'cancel': 'yes'}", "cancel"),
        ("{'compaction': {'summary': 'x'}}", "first_kept_index"),
        ("{'compaction': {'summary': 'x', 'first_kept_index': 'a'}}", "first_kept_index"),
        ("{'compaction': {'summary': 'x', 'first_kept_index': 7, 'details': {'a': object()}}}", "object"),
        ("{'add_text': '\\ud800'}", "surrogates"),
    ],
)
async def test_a_bad_answer_is_named_and_does_not_count(load, answer, named):
    loaded = await load(a=answering(answer))
    assert await loaded.before_compact() == []
    assert len(loaded.faults) == 1
    assert loaded.faults[0].startswith("The extension a answered session_before_compact with what is no answer:")
    assert named in loaded.faults[0]


async def test_details_are_plain_json_of_our_own(load):
    supplied = {"summary": "s", "first_kept_index": 7, "tokens_before": 9, "details": {"list": (1, 2), "n": None}}
    answer = read_answer({"compaction": supplied}, BeforeCompactAnswer)
    assert answer.compaction == SuppliedCompaction(
        summary="s", first_kept_index=7, tokens_before=9, details={"list": [1, 2], "n": None}
    )
    assert read_answer(BeforeTreeAnswer(cancel=True), BeforeTreeAnswer) == BeforeTreeAnswer(cancel=True)


async def test_a_hanging_handler_is_left_after_the_timeout_and_not_asked_a_third_time(load):
    loaded = await load(timeout=0.1, a=HANGING, b=answering("{'add_text': 'x'}"))
    for _ in range(3):
        assert [named.extension for named in await loaded.before_compact()] == ["b"]
    assert loaded.asked == ["a", "b", "a", "b", "b"]
    assert loaded.faults == [
        "The extension a failed in session_before_compact: no answer within 0.1 seconds",
        "The extension a failed in session_before_compact: no answer within 0.1 seconds; it is not asked any more",
    ]


HANGING = """
import asyncio

def setup(tenuto):
    @tenuto.on("session_before_compact")
    async def hang(event):
        try:
            await asyncio.sleep(3600)
        finally:
            tenuto.notify("cancelled")
"""


async def test_an_answer_in_time_counts_the_late_ones_anew(load):
    loaded = await load(
        timeout=0.2,
        a="""
import time
calls = []

def setup(tenuto):
    @tenuto.on("session_before_compact")
    def ask(event):
        calls.append(event)
        if len(calls) % 2:
            event.signal.wait(30)
        return {"add_text": str(len(calls))}
""",
    )
    answers = [await loaded.before_compact() for _ in range(5)]
    assert [bool(found) for found in answers] == [False, True, False, True, False]


async def test_a_cancelled_asking_sets_the_signal_and_cancels_the_handler(load):
    loaded = await load(
        a=HANGING,
        b="""
def setup(tenuto):
    @tenuto.on("session_before_tree")
    def wait(event):
        tenuto.notify("waiting")
        event.signal.wait(30)
        tenuto.notify(f"signal {event.signal.is_set()}")
""",
    )
    for asking, said in (
        (loaded.before_compact(), "info a: cancelled"),
        (loaded.host.ask_before_tree(BEFORE_TREE, loaded.asked.append), "info b: signal True"),
    ):
        asked = len(loaded.asked)
        task = asyncio.create_task(asking)
        while len(loaded.asked) == asked or (said.startswith("info b") and "info b: waiting" not in loaded.said):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await loaded.until_said(said)
    assert loaded.faults == []


async def test_a_blocking_handler_does_not_block_the_event_loop(load):
    loaded = await load(
        a="import time\ndef setup(tenuto):\n    @tenuto.on('session_before_compact')\n    async def block(event):\n"
        "        time.sleep(0.5)\n        return {'add_text': 'late'}\n"
    )
    asking = asyncio.create_task(loaded.before_compact())
    ticks = 0
    while not asking.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 5
    assert [named.answer.add_text for named in await asking] == ["late"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("value = 1", "it has no function setup(tenuto)"),
        ("def setup(tenuto:\n", "SyntaxError"),
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere' (a.py:1)"),
        ("def setup(tenuto):\n    tenuto.on('session_compacted', print)", "there is no hook 'session_compacted'"),
        ("def setup(tenuto):\n    tenuto.on('session_compact', 3)", "has to be a function, not int (a.py:2)"),
        ("import sys\nsys.exit(3)", "it tried to end the program (SystemExit)"),
        ("import time\ntime.sleep(60)", "no answer within 1 seconds"),
    ],
)
async def test_what_cannot_be_loaded_is_named_and_the_others_work(load, text, said):
    loaded = await load(timeout=1, a=text, b=answering("{'add_text': 'x'}"))
    assert loaded.host.names == ("b",)
    assert len(loaded.faults) == 1
    assert "The extension a (" in loaded.faults[0]
    assert said in loaded.faults[0]
    assert [named.extension for named in await loaded.before_compact()] == ["b"]


async def test_what_is_told_comes_in_order_and_before_what_is_asked_next(load):
    loaded = await load(
        a="""
import asyncio
seen = []

def setup(tenuto):
    @tenuto.on("session_compact_failed")
    async def failed(event):
        await asyncio.sleep(0.02 / (1 + len(seen)))
        seen.append(event.error)

    @tenuto.on("session_before_compact")
    def ask(event):
        return {"add_text": " ".join(seen)}
"""
    )
    for _ in range(3):
        loaded.host.tell("session_compact_failed", FAILED)
    assert [named.answer.add_text for named in await loaded.before_compact()] == ["no no no"]


async def test_the_end_waits_for_what_is_being_told(load, tmp_path):
    note = tmp_path / "note"
    loaded = await load(
        a=f"""
import asyncio
from pathlib import Path

def setup(tenuto):
    @tenuto.on("session_compact_failed")
    async def failed(event):
        await asyncio.sleep(0.05)
        Path({str(note)!r}).write_text(event.error)
"""
    )
    loaded.host.tell("session_compact_failed", FAILED)
    await loaded.host.close()
    assert note.read_text() == "no"


async def test_nobody_is_asked_where_nobody_listens(load):
    loaded = await load(a=answering("None"))
    assert loaded.host.listens("session_before_compact")
    assert not loaded.host.listens("session_tree")


async def test_what_an_extension_says_bears_its_name(load):
    loaded = await load(
        a="import threading\ndef setup(tenuto):\n"
        "    threading.Thread(target=lambda: tenuto.notify('from elsewhere', 'warning')).start()\n"
    )
    await loaded.until_said("warning a: from elsewhere")


async def test_a_summary_of_a_branch_that_nobody_wants_is_left_out(load):
    loaded = await load(
        a="def setup(tenuto):\n"
        "    tenuto.on('session_before_tree', lambda event: {'summary': {'summary': 'S', 'details': {'n': 1}}})\n"
    )
    unwanted = msgspec.structs.replace(
        BEFORE_TREE, preparation=msgspec.structs.replace(BEFORE_TREE.preparation, user_wants_summary=False)
    )
    for event, summaries in ((BEFORE_TREE, ["S"]), (unwanted, [None])):
        answers = await loaded.host.ask_before_tree(event, loaded.asked.append)
        assert [one.answer.summary and one.answer.summary.summary for one in answers] == summaries


async def test_what_one_is_told_does_not_hold_up_the_others(load):
    loaded = await load(
        a="import asyncio\ndef setup(tenuto):\n"
        "    tenuto.on('session_compact_failed', lambda event: asyncio.sleep(3600))\n",
        b=answering("{'add_text': 'x'}"),
    )
    loaded.host.tell("session_compact_failed", FAILED)
    answers = await asyncio.wait_for(loaded.before_compact(), 60)
    assert [named.extension for named in answers] == ["b"]
    for task in asyncio.all_tasks():
        if task.get_name() == "session_compact_failed":
            task.cancel()


async def test_the_end_does_not_wait_for_one_that_is_stuck(load, monkeypatch):
    monkeypatch.setattr("tenuto.extension.host.CLOSE_PATIENCE", 3600.0)
    loaded = await load(
        timeout=0.1,
        a="import time\ndef setup(tenuto):\n"
        "    tenuto.on('session_before_compact', lambda event: time.sleep(60))\n"
        "    tenuto.on('session_compact_failed', lambda event: None)\n",
    )
    await loaded.before_compact()
    for _ in range(3):
        loaded.host.tell("session_compact_failed", FAILED)
    await asyncio.wait_for(loaded.host.close(), 20)
