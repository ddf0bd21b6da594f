"""The session as a whole: opening and replay, the facts of the status line, notices, detail, keys, and what only time
changes: seconds that count up, hints that go away, a panel that waited for a pause in typing.
"""

from __future__ import annotations

from tenuto.command.outcome import Say, ShowContext
from tenuto.protocol.event import (
    CommandProgressEvent,
    ContextUsageEvent,
    ExtensionStatusEvent,
    ModeChangedEvent,
    ModelChangedEvent,
    NoticeEvent,
    ReplayFinishedEvent,
    SessionOpenedEvent,
    TitleChangedEvent,
)
from tenuto.tui.keys.bindings import CHORD_SECONDS, join_phrases
from tenuto.tui.machine.approval import open_if_due
from tenuto.tui.machine.change import Change, on, pass_verdict
from tenuto.tui.machine.panel import open_held
from tenuto.tui.machine.turn import close_open_calls, newest_streamed
from tenuto.tui.state.effects import Repaint, ThemeChanged, TranscriptReset
from tenuto.tui.state.intents import (
    BranchRead,
    ChordChanged,
    CommandLasts,
    EditingChanged,
    Failed,
    KeyboardKnown,
    KeysLoaded,
    RepaintScreen,
    ThemeChosen,
    Tick,
    ToggleDetail,
    ToggleItem,
)
from tenuto.tui.state.item import (
    AssistantItem,
    CompactionItem,
    ContextItem,
    ShellItem,
    ThinkingItem,
    ToolItem,
    Transcript,
)
from tenuto.tui.state.state import StatusLine, UiState

AT_WORK = " is at work"
KEPT = frozenset(
    {
        "draft",
        "completion_generation",
        "own_commands",
        "pastes",
        "history",
        "detail",
        "ladder",
        "interrupt_presses",
        "help_open",
        "todo_open",
        "keys",
        "tells_shift_enter",
        "editing",
        "theme",
        "second_step",
    }
)
"""What belongs to the user and not to the session, and outlives a change of session."""


@on(SessionOpenedEvent)
def open_session(change: Change, event: SessionOpenedEvent) -> None:
    """Begin with an empty transcript; a resumed session's entries follow and show when they are all there."""
    state = change.state
    fresh = UiState(
        session_id=event.session_id,
        transcript=Transcript(next_id=state.transcript.next_id),
        status=StatusLine(
            model=event.model,
            effort=event.effort,
            sees_images=event.sees_images,
            mode=event.mode,
            cwd=event.cwd,
            title=event.title,
            began=event.began,
            directory=event.directory,
            sandboxed=event.sandboxed,
            branch=state.status.branch if event.cwd == state.status.cwd else "",
        ),
        terminal_title=state.terminal_title,
    )
    for name in UiState.__struct_fields__:
        if name not in KEPT:
            setattr(state, name, getattr(fresh, name))
    show_everything(change)
    state.replaying = event.resumed


@on(ReplayFinishedEvent)
def finish_replay(change: Change, _event: ReplayFinishedEvent) -> None:
    """Everything is there: show it at once."""
    close_open_calls(change)
    pass_verdict(change)
    change.state.replaying = False
    show_everything(change)


@on(ModelChangedEvent)
def set_model(change: Change, event: ModelChangedEvent) -> None:
    """Another model, another effort."""
    status = change.state.status
    status.model, status.effort, status.sees_images = event.model, event.effort, event.sees_images
    change.status()


@on(ModeChangedEvent)
def set_mode(change: Change, event: ModeChangedEvent) -> None:
    """Another approval mode."""
    change.state.status.mode = event.mode
    change.status()


@on(TitleChangedEvent)
def set_title(change: Change, event: TitleChangedEvent) -> None:
    """Another title, also of the terminal."""
    change.state.status.title = event.title
    change.status()
    change.title()


@on(ContextUsageEvent)
def set_usage(change: Change, event: ContextUsageEvent) -> None:
    """The window is so full."""
    status = change.state.status
    status.tokens, status.window, status.trigger = event.tokens, event.window, event.trigger
    status.estimated, status.total, status.jobs = event.estimated, event.total, event.jobs
    change.status()


@on(ExtensionStatusEvent)
def set_extension_status(change: Change, event: ExtensionStatusEvent) -> None:
    """An extension shows something else in the footer, or nothing any more."""
    shown = change.state.status.extensions
    shown.pop(event.extension, None)
    if event.text:
        shown[event.extension] = event.text
    change.status()


@on(BranchRead)
def set_branch(change: Change, intent: BranchRead) -> None:
    """Another git branch, or it is as committed now, or not any more."""
    status = change.state.status
    if (status.branch, status.dirty) != (intent.branch, intent.dirty):
        status.branch, status.dirty = intent.branch, intent.dirty
        change.status()


@on(NoticeEvent)
def show_notice(change: Change, event: NoticeEvent) -> None:
    """Tell the user."""
    change.notice(event.text, event.level, event.kind)


@on(Say)
def show_answer(change: Change, intent: Say) -> None:
    """Show what a command answered."""
    change.notice(intent.text, intent.level, "command")


@on(CommandLasts)
def show_work(change: Change, intent: CommandLasts) -> None:
    """Say that a command is at work, for as long as it is."""
    state = change.state
    state.stoppable = intent.name if intent.stoppable else ""
    if intent.name:
        way_out = state.keys.phrase("escape", "stop") if intent.stoppable else ""
        change.hint(join_phrases(f"{intent.name}{AT_WORK}", way_out), float("inf"))
    elif state.hint is not None and AT_WORK in state.hint.text:
        state.hint = None
        change.status()


@on(CommandProgressEvent)
def show_how_far(change: Change, event: CommandProgressEvent) -> None:
    """Say in the same line how far it is."""
    state = change.state
    if event.text and state.hint is not None and AT_WORK in state.hint.text:
        name = state.hint.text.partition(AT_WORK)[0]
        way_out = state.keys.phrase("escape", "stop") if state.stoppable else ""
        change.hint(join_phrases(f"{name}{AT_WORK}", event.text, way_out), float("inf"))


@on(ShowContext)
def show_context(change: Change, intent: ShowContext) -> None:
    """Show what fills the window, as it is now."""
    change.add(ContextItem(report=intent.report, final=True))


@on(Failed)
def show_failure(change: Change, intent: Failed) -> None:
    """Show what went wrong in the front-end."""
    change.notice(intent.text, "error")


@on(ToggleDetail)
def toggle_detail(change: Change, _intent: ToggleDetail) -> None:
    """Fold or unfold everything, now and from now on."""
    state = change.state
    state.detail = "expanded" if state.detail == "folded" else "folded"
    folded = state.detail == "folded"
    for item in state.transcript.items.values():
        if item.folded != folded:
            item.folded = folded
            item.version += 1
    change.emit(TranscriptReset())
    change.status()


@on(ToggleItem)
def toggle_item(change: Change, intent: ToggleItem) -> None:
    """Fold or unfold one item."""
    item = change.state.transcript.get(intent.id)
    if item is not None:
        item.folded = not item.folded
        change.touch(item)


@on(RepaintScreen)
def repaint(change: Change, _intent: RepaintScreen) -> None:
    """Paint everything again."""
    change.emit(Repaint())


def show_everything(change: Change) -> None:
    """Ask the front-end to read all of the state."""
    change.emit(TranscriptReset())
    change.status()
    change.panel()
    change.title()


# --- keys and theme ---


@on(KeysLoaded)
def load_keys(change: Change, intent: KeysLoaded) -> None:
    """Every hint and the help name other keys from now on."""
    change.state.keys = intent.keys
    change.status()
    change.panel()


@on(KeyboardKnown)
def know_keyboard(change: Change, intent: KeyboardKnown) -> None:
    """The hint on new lines names a key that works here."""
    change.state.tells_shift_enter = intent.tells_shift_enter
    change.status()


@on(ChordChanged)
def show_chord(change: Change, intent: ChordChanged) -> None:
    """Show the first key of a chord while the second is waited for."""
    if intent.pressed:
        change.hint(f"{intent.pressed} …", CHORD_SECONDS)
    elif change.state.hint is not None:
        change.state.hint = None
        change.status()


@on(EditingChanged)
def show_editing(change: Change, intent: EditingChanged) -> None:
    """Show the mode of vi's keys."""
    if change.state.editing != intent.label:
        change.state.editing = intent.label
        change.status()


@on(ThemeChosen)
def choose_theme(change: Change, intent: ThemeChosen) -> None:
    """Show everything in this theme from now on."""
    change.state.theme = intent.name
    change.emit(ThemeChanged(intent.name))
    change.toast(f"Theme: {intent.name}")


# --- time ---


@on(Tick)
def pass_time(change: Change, _intent: Tick) -> None:
    """Bring everything that depends on the time up to now."""
    state = change.state
    for item_id in state.timed:
        item = state.transcript.items[item_id]
        if isinstance(item, ThinkingItem | ToolItem | ShellItem | CompactionItem):
            seconds = change.now - item.started
            if seconds // state.second_step != item.seconds // state.second_step:
                item.seconds = seconds
                change.touch(item)
    if state.hint is not None and change.now >= state.hint.until:
        state.hint = None
        change.status()
    if change.now // state.second_step != state.last_tick // state.second_step:
        if state.spinner.top or state.retry:
            change.status()
        show_pausing(change)
    state.last_tick = change.now
    open_if_due(change)
    open_held(change)


def show_pausing(change: Change) -> None:
    """Show all of an answer that has not grown since the last look, once."""
    item = newest_streamed(change)
    length = len(item.text) if isinstance(item, AssistantItem) else 0
    if isinstance(item, AssistantItem) and length == change.state.streamed_length and not item.pausing:
        item.pausing = True
        change.touch(item)
    change.state.streamed_length = length
