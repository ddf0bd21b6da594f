from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Leave, Say
from tenuto.command.registry import Command
from tenuto.core.bus import EventBus
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    ShellFinishedEvent,
    ShellStartedEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
)
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.operation import AnyOperation, RunShellOperation
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.machine.step import DeltaBuffer
from tenuto.tui.runner import FLUSH_INTERVAL, Runner
from tenuto.tui.state.effects import DraftSet, ItemAdded, ItemChanged, Quit, ScreenEffect
from tenuto.tui.state.intents import Cancel, DraftChanged, Escape, HistoryPrevious, SendDraft, SendText, Tick
from tenuto.tui.state.item import AssistantItem, NoticeItem, ShellItem, UserItem
from tests.tui.machine.driving import SESSION, approval, opened, queue, started, user


class Core:
    """The core's side of the runner: the real event bus, and answers that the test sets."""

    def __init__(self, home: Path, *, temporary: bool = False) -> None:
        self.home = home
        self.temporary = temporary
        self.bus = EventBus(self._raise)
        self.operations: list[AnyOperation] = []
        self.prompts: list[tuple[tuple[ContentPart, ...], bool]] = []
        self.lines: list[str] = []
        self.outcomes: list[CommandOutcome] = []
        self.error: Exception | None = None
        self.subscribe = self.bus.subscribe
        self.brought: tuple[Command, ...] = ()
        self.mentionable: tuple[Choice, ...] = ()
        self.acts = 0

    @staticmethod
    def _raise(failure: Exception) -> None:
        raise failure

    def note_user(self) -> None:
        self.acts += 1

    async def submit(self, operation: AnyOperation) -> str:
        if self.error:
            raise self.error
        self.operations.append(operation)
        return operation.submission_id

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        if self.error:
            raise self.error
        self.prompts.append((parts, steer))
        return "id"

    async def own_commands(self) -> tuple[Command, ...]:
        return self.brought

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        return (Choice("plan", "plan"), Choice("auto", "auto"))

    async def resources(self) -> tuple[Choice, ...]:
        return self.mentionable

    async def run_command(self, line: str) -> list[CommandOutcome]:
        if self.error:
            raise self.error
        self.lines.append(line)
        return self.outcomes


class Stage:
    """A runner with a clock and a scheduler in the test's hands."""

    def __init__(self, home: Path, *, temporary: bool = False) -> None:
        self.core = Core(home, temporary=temporary)
        self.now = 50.0
        self.timers: list[tuple[float, object]] = []
        self.batches: list[list[ScreenEffect]] = []
        self.runner = Runner(self.core, self.batches.append, lambda: self.now, call_later=self.call_later)
        self.runner.start()

    def call_later(self, seconds, function):
        timer = _Timer(self.now + seconds, function)
        self.timers.append(timer)
        return timer

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer.at <= self.now]
        self.timers = [timer for timer in self.timers if timer.at > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.function()

    def publish(self, *events: AnyEvent) -> None:
        for event in events:
            self.core.bus.publish(event)

    async def open(self, cwd: str) -> None:
        event = opened()
        self.publish(type(event)(session_id=SESSION, cwd=cwd, model="offline/rules", mode="ask"))
        await self.rest()

    async def rest(self) -> None:
        """Let everything that was started come to its end."""
        while self.runner._tasks:
            await asyncio.gather(*self.runner._tasks, return_exceptions=True)

    @property
    def items(self):
        return self.runner.state.transcript.ordered()

    @property
    def effects(self) -> list[ScreenEffect]:
        return [effect for batch in self.batches for effect in batch]


class _Timer:
    def __init__(self, at, function) -> None:
        self.at, self.function, self.cancelled = at, function, False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
async def stage(tmp_path):
    made = Stage(tmp_path / "home")
    project = tmp_path / "project"
    project.mkdir()
    await made.open(str(project))
    made.batches.clear()
    yield made
    await made.runner.close()


def delta(text: str) -> AssistantTextDeltaEvent:
    return AssistantTextDeltaEvent(session_id=SESSION, text=text)


async def test_a_fast_stream_is_let_through_at_most_fifteen_times_a_second(stage):
    stage.publish(started())
    stage.batches.clear()
    for _ in range(1_000):
        stage.publish(delta("x"))
        stage.pass_time(0.001)
    changes = [each for each in stage.effects if isinstance(each, ItemChanged | ItemAdded)]
    assert 10 <= len(changes) <= 16
    stage.pass_time(FLUSH_INTERVAL)
    [item] = stage.items
    assert isinstance(item, AssistantItem) and item.text == "x" * 1_000


async def test_the_first_delta_shows_at_once_and_a_final_event_does_not_wait(stage):
    stage.publish(started(), delta("a"))
    assert isinstance(stage.items[0], AssistantItem)
    stage.publish(delta("b"), delta("c"))
    assert stage.items[0].text == "a"
    message = AssistantMessage(parts=(TextPart(text="abc"),), seq=3)
    stage.publish(AssistantMessageEvent(session_id=SESSION, message=message))
    assert stage.items[0].text == "abc" and stage.items[0].final
    stage.pass_time(1)
    assert len(stage.items) == 1


async def test_an_approval_does_not_wait_and_comes_after_what_was_said_before_it(stage):
    stage.publish(started(), delta("a"), delta(" because"), approval())
    assert stage.items[0].text == "a because"
    assert stage.runner.state.approvals.current is not None


def test_deltas_join_without_changing_what_they_say():
    buffer = DeltaBuffer()
    events = [
        AssistantThinkingDeltaEvent(session_id=SESSION, text="t"),
        delta("a"),
        delta("b"),
        ToolCallDeltaEvent(session_id=SESSION, index=0, name="bash", characters=0),
        ToolCallDeltaEvent(session_id=SESSION, index=0, name="", characters=9),
        ToolOutputEvent(session_id=SESSION, call_id="1", text="x"),
        ToolOutputEvent(session_id=SESSION, call_id="2", text="y"),
        ToolOutputEvent(session_id=SESSION, call_id="1", text="z"),
        AssistantThinkingDeltaEvent(session_id=SESSION, text="u"),
    ]
    assert all(buffer.add(event) for event in events)
    assert not buffer.add(started())
    assert buffer.drain() == [
        events[0],
        delta("ab"),
        ToolCallDeltaEvent(session_id=SESSION, index=0, name="bash", characters=9),
        ToolOutputEvent(session_id=SESSION, call_id="1", text="xz"),
        ToolOutputEvent(session_id=SESSION, call_id="2", text="y"),
        events[8],
    ]
    assert not buffer and buffer.drain() == []


async def test_what_the_user_enters_goes_where_it_belongs(stage):
    image = ImagePart(sha256="0" * 64, media_type="image/png")
    await stage.runner.submit_user_input("hello", [image])
    await stage.runner.submit_user_input("/context")
    await stage.runner.submit_user_input("!!ls -l")
    assert stage.core.prompts == [((TextPart(text="hello"), image), False)]
    assert stage.core.lines == ["/context"]
    [operation] = stage.core.operations
    assert isinstance(operation, RunShellOperation)
    assert (operation.command, operation.excluded, operation.session_id) == ("ls -l", True, SESSION)


@pytest.mark.parametrize("text", ["a prompt", "/context", "!ls"])
async def test_nothing_that_was_entered_is_lost_when_the_core_fails(stage, text):
    stage.core.error = RuntimeError("the disk is full")
    await stage.runner.submit_user_input(text)
    assert stage.runner.state.draft.text == text
    assert DraftSet(text, len(text)) in stage.effects
    [item] = stage.items
    assert isinstance(item, NoticeItem) and (item.text, item.level) == ("the disk is full", "error")


async def test_prompts_are_handed_over_in_order(stage):
    await asyncio.gather(*(stage.runner.submit_user_input(f"p{number}") for number in range(20)))
    assert [parts[0].text for parts, _ in stage.core.prompts] == [f"p{number}" for number in range(20)]


async def test_the_core_hears_of_each_key_and_of_no_clock(stage):
    before = stage.core.acts
    for typed in ("a", "ab"):
        stage.runner.handle(DraftChanged(typed, len(typed)))
    stage.runner.handle(Tick())
    assert stage.core.acts - before == 2


async def test_outcomes_of_commands_are_acted_on(stage):
    stage.core.outcomes = [Say("all good"), Choose("Model", "model", (Choice("a/b", "b"),)), Leave()]
    await stage.runner.submit_user_input("/anything")
    assert [type(item) for item in stage.items] == [NoticeItem]
    assert stage.runner.state.picker is not None
    assert Quit() in stage.effects


async def test_an_intent_from_within_effects_comes_next_and_not_in_between(tmp_path):
    seen: list[tuple[str, list[ScreenEffect]]] = []

    def apply(effects: list[ScreenEffect]) -> None:
        seen.append((runner.state.draft.text, effects))
        for effect in effects:
            if isinstance(effect, DraftSet):
                runner.handle(DraftChanged(effect.text, effect.cursor))

    runner = Runner(Core(tmp_path), apply, lambda: 1.0)
    runner.start()
    runner.handle(DraftChanged("hello", 5))
    runner.handle(SendDraft())
    assert runner.state.draft.text == ""
    assert sum(DraftSet("", 0) in effects for _, effects in seen) == 1
    await runner.close()


async def test_sent_prompts_are_remembered_over_runs(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    first = Stage(tmp_path)
    await first.open(str(project))
    await first.runner.submit_user_input("one")
    await first.runner.submit_user_input("two")
    await first.runner.close()
    second = Stage(tmp_path)
    await second.open(str(project))
    second.runner.handle(HistoryPrevious())
    assert second.runner.state.draft.text == "two"
    second.runner.handle(HistoryPrevious())
    assert second.runner.state.draft.text == "one"
    await second.runner.close()


async def test_typing_offers_commands_and_paths(stage, tmp_path):
    (tmp_path / "project" / "main.py").write_text("x")
    stage.runner.handle(DraftChanged("/mod", 4))
    popup = stage.runner.state.completion
    assert popup is not None and {item.label for item in popup.items} >= {"/model", "/mode"}
    stage.runner.handle(DraftChanged("see @ma", 7))
    await stage.rest()
    popup = stage.runner.state.completion
    assert popup is not None
    assert (popup.start, popup.end, popup.items[0].insert) == (4, 7, "@main.py ")


async def test_j3_what_is_typed_while_commands_are_looked_for_is_offered_them_too(stage, tmp_path):
    await stage.open(str(tmp_path / "project"))
    stage.core.brought = (Command("git:sync", "Bring the branch up to date", "[BRANCH]", topic="own_commands"),)
    for end in range(1, 5):  # faster than anything is read from disk
        stage.runner.handle(DraftChanged("/git"[:end], end))
    await stage.rest()
    popup = stage.runner.state.completion
    assert popup is not None
    assert popup.items[0].insert == "/git:sync "


async def test_j3_typing_a_slash_offers_what_users_and_projects_bring(stage, tmp_path):
    await stage.open(str(tmp_path / "project"))
    stage.core.brought = (Command("git:sync", "Bring the branch up to date", "[BRANCH]", topic="own_commands"),)
    stage.runner.handle(DraftChanged("/s", 2))
    stage.runner.handle(DraftChanged("/sync", 5))  # typed on before it is known what there is
    await stage.rest()
    popup = stage.runner.state.completion
    assert popup is not None
    assert popup.items[0].insert == "/git:sync "
    assert popup.items[0].detail == "Bring the branch up to date · [BRANCH]"
    assert ghost_hint("/git:sync ", 10, stage.runner.state.own_commands) == "[BRANCH]"
    stage.runner.handle(SendText("/git:sync main"))
    await stage.rest()
    assert stage.core.lines == ["/git:sync main"]


async def test_j1_an_at_sign_offers_the_resources_of_servers_behind_the_paths(stage, tmp_path):
    (tmp_path / "project" / "notes.txt").write_text("x")
    stage.core.mentionable = (Choice("wiki:note://one", "wiki:note://one", "The first"),)
    for typed, wanted in (("@not", 2), ("@wiki:", 1), ("@first", 1)):
        stage.runner.handle(DraftChanged(typed, len(typed)))
        await stage.rest()
        popup = stage.runner.state.completion
        assert popup is not None and len(popup.items) == wanted
        assert popup.items[-1].insert == "@wiki:note://one " and popup.items[-1].detail == "The first"


async def test_the_branch_is_read(stage, tmp_path):
    git = tmp_path / "project" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/topic\n")
    await stage.open(str(tmp_path / "project"))
    assert stage.runner.state.status.branch == "topic"


async def test_a_queue_and_its_messages_arrive_as_they_happen(stage):
    await stage.runner.submit_user_input("go")
    stage.publish(queue((2, "go")), started(), user(3, "go", 2), queue())
    [item] = stage.items
    assert isinstance(item, UserItem) and item.seq == 3


async def test_a_shell_command_shows_live_and_final(stage):
    stage.publish(started("shell"), ShellStartedEvent(session_id=SESSION, command="ls"))
    entry = ShellEntry(command="ls", output="a\n", exit_code=0, duration=0.1)
    stage.publish(ShellFinishedEvent(session_id=SESSION, entry=entry))
    [item] = stage.items
    assert isinstance(item, ShellItem) and (item.output, item.final) == ("a\n", True)


async def test_after_closing_nothing_is_heard(stage):
    await stage.runner.close()
    stage.publish(user(1, "x"))
    assert stage.items == []


async def test_a_screen_that_is_slow_gets_effects_less_often(tmp_path):
    stage = Stage(tmp_path)
    made: list[float] = []

    def draw_slowly(effects: list[ScreenEffect]) -> None:
        made.append(stage.now)
        stage.now += 0.05

    runner = Runner(stage.core, draw_slowly, lambda: stage.now, call_later=stage.call_later)
    runner.start()
    stage.publish(opened(), started())
    made.clear()
    for _ in range(1_000):
        stage.publish(delta("x"))
        stage.pass_time(0.001)
    assert 2 <= len(made) <= 8
    await runner.close()


async def test_a_history_that_cannot_be_written_is_told_and_nothing_else(tmp_path):
    (tmp_path / "home").write_text("a file where the directory should be")
    stage = Stage(tmp_path / "home")
    await stage.open(str(tmp_path))
    await stage.runner.submit_user_input("hello")
    assert stage.core.prompts
    notices = [item for item in stage.items if isinstance(item, NoticeItem)]
    assert [notice.level for notice in notices if "prompt history" in notice.text] == ["warning"]
    await stage.runner.close()


@pytest.mark.parametrize("press", [Escape(), Cancel()])
@pytest.mark.parametrize(
    ("line", "is_stopped"),
    [("/recall all of it", True), ("/export all of it", True), ("/mcp__late__greet Ada", True), ("/fork", False)],
)
async def test_escape_ends_a_command_that_leaves_nothing_and_no_other(stage, press, line, is_stopped):
    gate = asyncio.Event()
    ended: list[str] = []

    async def slowly(line: str) -> list[CommandOutcome]:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            ended.append("stopped")
            raise
        ended.append("done")
        return []

    stage.core.run_command = slowly
    stage.runner.handle(SendText(line))
    await asyncio.sleep(0)
    stage.pass_time(1)
    stage.runner.handle(press)
    if not is_stopped:
        await asyncio.sleep(0)
        gate.set()
    await stage.rest()
    assert ended == ["stopped" if is_stopped else "done"]
    said = [item.text for item in stage.items if isinstance(item, NoticeItem)]
    assert said == ([f"{line.split()[0]} was stopped."] if is_stopped else [])
    assert stage.runner.state.stoppable == ""


async def test_a_command_that_takes_long_says_so_until_it_is_done(stage):
    gate = asyncio.Event()

    async def slowly(_line: str) -> list[CommandOutcome]:
        await gate.wait()
        return []

    stage.core.run_command = slowly
    stage.runner.handle(SendText("/export all of it"))
    await asyncio.sleep(0)
    assert stage.runner.state.hint is None
    stage.pass_time(1)
    hint = stage.runner.state.hint
    assert hint is not None and hint.text == "/export is at work · Esc stop"
    gate.set()
    await stage.rest()
    assert stage.runner.state.hint is None
