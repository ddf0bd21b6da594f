"""Tasks, steps and the answer that streams, its calls, the todo list, and the user's own shell commands.

What streams is provisional: `AssistantMessageEvent` stands for all of it. The items of a finished answer are planned
from the message alone, so the live path (deltas, then message) and the replay (message only) end the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tenuto.protocol.entry import FAILED_KIND
from tenuto.protocol.event import (
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    CallRefusedEvent,
    ChildProgressEvent,
    HooksRunningEvent,
    RetryEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ShellStartedEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    TodoChangedEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    WebSearchEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.part import OpaquePart, TextPart, ThinkingPart, ToolCallPart, cited_in
from tenuto.text.call_summary import summarise_call
from tenuto.tui.machine.change import Change, on, pass_verdict
from tenuto.tui.state.effects import Bell
from tenuto.tui.state.item import (
    AssistantItem,
    Item,
    SearchItem,
    ShellItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    ToolState,
    append_output,
    append_text,
)
from tenuto.tui.state.pieces import Cutter, pieces_of
from tenuto.tui.state.state import OPEN_STATES, Retry, SpinnerLayer, TaskKind


def set_layer(change: Change, kind: TaskKind, label: str) -> None:
    """Begin a layer now. The layers below keep their label and time."""
    change.state.spinner.layers[kind] = SpinnerLayer(kind, label, change.now)
    change.status()


def set_label(change: Change, kind: TaskKind, label: str, detail: str = "") -> None:
    """Say what a layer does now; it keeps its time. Does nothing when the layer is not there."""
    layer = change.state.spinner.layers.get(kind)
    if layer is not None and (layer.label, layer.detail) != (label, detail):
        layer.label, layer.detail = label, detail
        change.status()


def restart_clock(change: Change, kind: TaskKind) -> None:
    """Count a layer's seconds from now on: the task goes on with something else. Does nothing without the layer."""
    layer = change.state.spinner.layers.get(kind)
    if layer is not None:
        layer.since = change.now
        change.status()


def drop_layer(change: Change, kind: TaskKind) -> None:
    """End a layer; what was under it shows again."""
    if change.state.spinner.layers.pop(kind, None) is not None:
        change.status()


# --- tasks ---


@on(TaskStartedEvent)
def start_task(change: Change, event: TaskStartedEvent) -> None:
    """Note that the task runs; a compaction shows itself when it starts."""
    state = change.state
    state.tasks[event.submission_id] = event.kind
    if state.began is None:
        state.began = change.now
    if event.kind == "agent":
        state.todo_over = not any(todo.status in OPEN_STATES for todo in state.todo)
        set_layer(change, "agent", "Working")
    elif event.kind == "shell":
        set_layer(change, "shell", "Running a command")
    change.title()
    change.status()


@on(TaskFinishedEvent)
def finish_task(change: Change, event: TaskFinishedEvent) -> None:
    """Take the task's spinner away and say why it failed; what its stream left open stays readable."""
    state = change.state
    state.tasks.pop(event.submission_id, None)
    if event.kind not in state.tasks.values():
        drop_layer(change, event.kind)
    if event.kind == "agent":
        keep_unfinished_answer(change)
        state.retry = None
    if event.outcome == "failed" and event.error and event.kind != "compaction":  # its block says why
        change.notice(event.error, "error", FAILED_KIND)
    if not state.tasks:
        forget_presses(change)
        change.title()
    change.status()


@on(TaskSettledEvent)
def settle(change: Change, event: TaskSettledEvent) -> None:
    """Nothing runs any more: no spinner, no open call, and the user is called back."""
    state = change.state
    for submission_id in list(state.tasks):
        del state.tasks[submission_id]
    for kind in list(state.spinner.layers):
        drop_layer(change, kind)
    keep_unfinished_answer(change)
    close_open_calls(change)
    pass_verdict(change)
    state.retry = None
    forget_presses(change)
    if event.outcome != "interrupted":
        took = change.now - state.began if state.began is not None else 0.0
        change.emit(Bell("finished" if event.outcome == "completed" else "failed", took))
    state.began = None
    change.title()
    change.status()
    change.panel()


def forget_presses(change: Change) -> None:
    """Let go of what was said, and counted, of keys that would have stopped what runs no more."""
    state = change.state
    state.ladder.interrupted_at = None
    if state.hint is not None and state.hint.on_task:
        state.hint = None
        state.ladder.escape_at = state.ladder.leave_at = float("-inf")


@on(StepStartedEvent)
def start_step(change: Change, _event: StepStartedEvent) -> None:
    """A request is under way."""
    change.state.retry = None
    set_label(change, "agent", "Waiting for the model")


@on(RetryEvent)
def show_retry(change: Change, event: RetryEvent) -> None:
    """Count down to the next attempt."""
    change.state.retry = Retry(event.attempt, event.attempts, change.now + event.wait, event.reason)
    set_label(change, "agent", "Waiting to try again")


@on(HooksRunningEvent)
def show_hooks(change: Change, event: HooksRunningEvent) -> None:
    """Say which hook commands the work waits for."""
    change.state.hooks = event.names
    change.status()


# --- the stream ---


@on(AssistantThinkingDeltaEvent)
def add_thinking(change: Change, event: AssistantThinkingDeltaEvent) -> None:
    """More reasoning."""
    change.state.retry = None
    item = newest_streamed(change)
    if isinstance(item, ThinkingItem):
        append_text(item, event.text)
        change.touch(item)
    elif event.text.strip():
        end_thinking(change)
        item = ThinkingItem(text=event.text)
        add_streamed(change, item)
        change.start_clock(item)
    set_label(change, "agent", "Thinking")


@on(AssistantTextDeltaEvent)
def add_text(change: Change, event: AssistantTextDeltaEvent) -> None:
    """More text."""
    change.state.retry = None
    item = newest_streamed(change)
    if isinstance(item, AssistantItem):
        append_text(item, event.text)
        item.pausing = False
        change.touch(item)
        part_answer(change, item)
    elif event.text.strip():
        end_thinking(change)
        item = AssistantItem(text=event.text)
        add_streamed(change, item)
        change.state.cutter = Cutter()
        part_answer(change, item)
    set_label(change, "agent", "Answering")


def part_answer(change: Change, item: AssistantItem) -> None:
    """Go on with another item wherever the piece of the answer that this one has is whole."""
    text, begin = item.text, 0
    while end := change.state.cutter.cut(text, begin):
        item.text, item.final = text[begin:end], True
        change.touch(item)
        item, begin = AssistantItem(piece=item.piece + 1), end
        add_streamed(change, item)
    if begin:
        item.text = text[begin:]


@on(ToolCallDeltaEvent)
def grow_call(change: Change, event: ToolCallDeltaEvent) -> None:
    """A call is being written: show its name and how long it is already."""
    change.state.retry = None
    items = change.state.transcript.items
    calls = [item for item_id in change.state.streaming if isinstance(item := items[item_id], ToolItem)]
    if event.index < len(calls):
        item = calls[event.index]
        item.name = event.name or item.name
        item.characters = event.characters
        change.touch(item)
    else:
        end_thinking(change)
        item = ToolItem(name=event.name, characters=event.characters)
        add_streamed(change, item)
    set_label(change, "agent", f"Preparing {item.name or 'a call'}")


@on(WebSearchEvent)
def show_search(change: Change, event: WebSearchEvent) -> None:
    """The provider searches, or has found something: the newer word of a search stands for the older."""
    change.state.retry = None
    items = change.state.transcript.items
    streamed = (items[item_id] for item_id in reversed(change.state.streaming))
    item = next((item for item in streamed if isinstance(item, SearchItem) and item.search.id == event.search.id), None)
    if item is None:
        end_thinking(change)
        add_streamed(change, SearchItem(search=event.search))
    else:
        item.search = event.search
        change.touch(item)
    set_label(change, "agent", "Working" if event.search.done else "Searching the web")


@on(AssistantWithdrawnEvent)
def withdraw(change: Change, _event: AssistantWithdrawnEvent) -> None:
    """Take back what was streamed of the failed attempt."""
    for item_id in change.state.streaming:
        change.remove(item_id)
    change.state.streaming = []


@on(AssistantMessageEvent)
def finish_answer(change: Change, event: AssistantMessageEvent) -> None:
    """Turn what was streamed into what is in the history."""
    state = change.state
    end_thinking(change)
    streamed = [state.transcript.items[item_id] for item_id in state.streaming]
    planned = plan_items(event.message, [item.text for item in streamed if isinstance(item, AssistantItem)])
    state.streaming = []
    fitting = count_fitting(planned, streamed)
    for item in streamed[fitting:]:
        change.remove(item.id)
    settled: list[Item] = []
    for place, plan in enumerate(planned):
        if place < fitting:
            take_over(change, streamed[place], plan)
            settled.append(streamed[place])
        else:
            change.add(plan)
            settled.append(plan)
    change.settle([item.id for item in settled])
    for item in settled:
        if isinstance(item, ToolItem):
            state.calls[item.call_id] = item.id


# --- helpers ---


def plan_items(message: AssistantMessage, known: Sequence[str] = ()) -> list[Item]:
    """Return the items that an answer in the history stands for: neighbouring texts as one, blank ones not at all.

    A long text is cut into pieces; `known` are texts that are there already.
    """
    planned: list[Item] = []
    phase = ""
    seconds = message.thinking_duration
    for part in message.parts:
        last = planned[-1] if planned else None
        match part:
            case TextPart(text=text) if text and isinstance(last, AssistantItem):
                last.text += text if part.phase == phase else f"\n\n{text}"
                phase = part.phase
            case TextPart(text=text) if text and not text.isspace():
                interrupted = message.stop_reason == "interrupted"
                planned.append(AssistantItem(text=text, seq=message.seq, interrupted=interrupted, final=True))
                phase = part.phase
            case ThinkingPart(text=text) if text.strip() and isinstance(last, ThinkingItem):
                last.text += f"\n\n{text}"
            case ThinkingPart(text=text) if text.strip():
                planned.append(ThinkingItem(text=text, seconds=seconds, final=True))
                seconds = 0.0
            case OpaquePart(search=search) if search is not None and search.done:
                planned.append(SearchItem(search=search, final=True))
            case ToolCallPart():
                summary = summarise_call(part.name, part.arguments)
                planned.append(
                    ToolItem(call_id=part.id, name=part.name, arguments=part.arguments, summary=summary, state="ready")
                )
            case _:
                continue
    if sources := cited_in(message.parts):
        planned.insert(_end_of_text(planned), SourcesItem(sources=sources, final=True))
    return [piece for item in planned for piece in _in_pieces(item, known)]


def _in_pieces(item: Item, known: Sequence[str]) -> list[Item]:
    texts = pieces_of(item.text, known) if isinstance(item, AssistantItem) else []
    if not isinstance(item, AssistantItem) or len(texts) == 1:
        return [item]
    last = len(texts) - 1
    return [
        replace(item, text=text, interrupted=item.interrupted and place == last, piece=place)
        for place, text in enumerate(texts)
    ]


def _end_of_text(planned: Sequence[Item]) -> int:
    """Return the place behind the last text: what is cited stands under it and above the calls."""
    return 1 + max(place for place, item in enumerate(planned) if isinstance(item, AssistantItem))


def count_fitting(planned: Sequence[Item], streamed: Sequence[Item]) -> int:
    """Return how many of the streamed items, from the first on, are of the planned kind."""
    count = 0
    for plan, item in zip(planned, streamed, strict=False):
        if type(plan) is not type(item):
            break
        count += 1
    return count


def take_over(change: Change, item: Item, plan: Item) -> None:
    """Make the streamed item what is planned."""
    match item, plan:
        case AssistantItem(), AssistantItem():
            item.seq = plan.seq
            if item.final and (item.text, item.interrupted) == (plan.text, plan.interrupted):
                return  # a piece that was whole before the answer was
            item.text, item.interrupted, item.piece = plan.text, plan.interrupted, plan.piece
            item.pausing = False
        case ThinkingItem(), ThinkingItem():
            item.text = plan.text
            change.stop_clock(item, plan.seconds)
        case SearchItem(), SearchItem():
            item.search = plan.search
        case ToolItem(), ToolItem():
            item.call_id, item.name, item.arguments = plan.call_id, plan.name, plan.arguments
            item.summary, item.state, item.characters = plan.summary, plan.state, 0
        case _:
            raise TypeError(f"{type(item).__name__} cannot become {type(plan).__name__}")
    item.final = plan.final
    change.touch(item)


def newest_streamed(change: Change) -> Item | None:
    """Return the item that was streamed last, `None` at the beginning of an answer."""
    streaming = change.state.streaming
    return change.state.transcript.items[streaming[-1]] if streaming else None


def add_streamed(change: Change, item: Item) -> None:
    """Add an item of the answer that streams."""
    change.add(item)
    change.state.streaming.append(item.id)


def end_thinking(change: Change) -> None:
    """The reasoning that came before what comes now grows no more: what waits for it can be shown."""
    item = newest_streamed(change)
    if isinstance(item, ThinkingItem) and item.id in change.state.timed:
        change.stop_clock(item)
        item.final = True
        change.touch(item)


def keep_unfinished_answer(change: Change) -> None:
    """A stream that just stopped: its text was read and stays, marked; half-written calls and searches go."""
    state = change.state
    end_thinking(change)
    for item_id in state.streaming:
        item = state.transcript.items[item_id]
        if isinstance(item, ToolItem | SearchItem):
            change.remove(item_id)
            continue
        if isinstance(item, AssistantItem) and not item.final:  # a piece that is whole goes on in the next one
            item.interrupted, item.pausing = True, False
        item.final = True
        change.touch(item)
    state.streaming = []


def close_open_calls(change: Change) -> None:
    """Calls that will get no result any more show as interrupted."""
    state = change.state
    for item_id in state.calls.values():
        item = state.transcript.items.get(item_id)
        if isinstance(item, ToolItem) and not item.final:
            item.state, item.final = "interrupted", True
            change.stop_clock(item)
            change.touch(item)
    state.calls.clear()


# --- calls, the todo list, shell commands ---


@on(ToolStartedEvent)
def start_call(change: Change, event: ToolStartedEvent) -> None:
    """The call runs now."""
    item = find_call(change, event.call_id)
    if item is None:
        item = ToolItem(call_id=event.call_id, name=event.name)
        change.add(item)
        change.state.calls[event.call_id] = item.id
    item.name, item.arguments = event.name, event.arguments
    item.summary = summarise_call(event.name, event.arguments) or event.summary
    item.state, item.characters = "running", 0
    change.start_clock(item)
    change.touch(item)
    label_running_calls(change)


@on(ToolOutputEvent)
def add_output(change: Change, event: ToolOutputEvent) -> None:
    """More live output of a running call."""
    item = find_call(change, event.call_id)
    if item is not None:
        append_output(item, event.text)
        change.touch(item)


@on(ToolResultEvent)
def finish_call(change: Change, event: ToolResultEvent) -> None:
    """The call has its result; a result without a call (its answer is not loaded) gets an item of its own."""
    result = event.message
    item = find_call(change, result.call_id)
    if item is None:
        item = ToolItem(call_id=result.call_id, name=result.name, state="running")
        change.add(item)
    item.state = result_state(result, item.state)
    item.result, item.output, item.characters, item.final = result, "", 0, True
    change.stop_clock(item, result.duration)
    change.state.calls.pop(result.call_id, None)
    change.touch(item)
    label_running_calls(change)


@on(ChildProgressEvent)
def note_progress(change: Change, event: ChildProgressEvent) -> None:
    """A sub-agent is further than before."""
    item = find_call(change, event.call_id)
    if item is not None:
        item.progress = event
        change.touch(item)


@on(CallRefusedEvent)
def note_refusal(_change: Change, _event: CallRefusedEvent) -> None:
    """Nothing: on a screen the user is asked, and what is refused shows as the call's result."""


@on(TodoChangedEvent)
def set_todo(change: Change, event: TodoChangedEvent) -> None:
    """The list is another one."""
    change.state.todo = event.items
    change.state.todo_over = change.state.todo_away = False
    change.panel()


@on(ShellStartedEvent)
def start_shell(change: Change, event: ShellStartedEvent) -> None:
    """A command of the user runs."""
    item = ShellItem(command=event.command, excluded=event.excluded, running=True)
    change.add(item)
    change.start_clock(item)
    change.state.shell_item = item.id


@on(ShellOutputEvent)
def add_shell_output(change: Change, event: ShellOutputEvent) -> None:
    """More of its output."""
    item = change.state.transcript.get(change.state.shell_item)
    if isinstance(item, ShellItem):
        append_output(item, event.text)
        change.touch(item)


@on(ShellFinishedEvent)
def finish_shell(change: Change, event: ShellFinishedEvent) -> None:
    """The command is in the history, here."""
    entry = event.entry
    item = change.state.transcript.get(change.state.shell_item)
    change.state.shell_item = 0
    if not isinstance(item, ShellItem):
        item = ShellItem()
        change.add(item)
    item.command, item.output, item.exit_code = entry.command, entry.output, entry.exit_code
    item.excluded, item.truncated, item.output_path = entry.excluded, entry.truncated, entry.output_path
    item.running, item.interrupted, item.final = False, entry.interrupted, True
    change.stop_clock(item, entry.duration)
    change.settle([item.id])
    change.touch(item)


def find_call(change: Change, call_id: str) -> ToolItem | None:
    """Return the item of an open call, `None` when there is none."""
    item = change.state.transcript.get(change.state.calls.get(call_id, 0))
    return item if isinstance(item, ToolItem) else None


def result_state(result: ToolResultMessage, before: ToolState) -> ToolState:
    """Return how a call ended; `before` is "denied" when the user said no a moment ago."""
    if result.interrupted:
        return "interrupted"
    if result.denied or before == "denied":
        return "denied"
    return "failed" if result.failed else "done"


def label_running_calls(change: Change) -> None:
    """Let the spinner say which calls run, or that nothing goes on without the user."""
    items = [item for call_id in change.state.calls if (item := find_call(change, call_id)) is not None]
    running = [item.name for item in items if item.state == "running"]
    if len(running) == 1:
        set_label(change, "agent", f"Running {running[0]}")
    elif running:
        set_label(change, "agent", f"Running {len(running)} calls")
    elif any(item.state == "waiting" for item in items):
        set_label(change, "agent", "Waiting for you")
    else:
        set_label(change, "agent", "Working")
