"""A machine with a clock that the test moves, and short ways to say what comes in."""

from __future__ import annotations

from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    QueueChangedEvent,
    QueueItem,
    SessionOpenedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.part import TextPart
from tenuto.tui.machine.step import step
from tenuto.tui.state.effects import Effect, ItemAdded, ItemChanged, ItemRemoved, OlderAdded, TranscriptReset
from tenuto.tui.state.intents import DraftChanged, Intent
from tenuto.tui.state.item import Item
from tenuto.tui.state.state import UiState
from tests.tui.kinds import kinds

SESSION = "s"


class Driver:
    """Feeds the machine, and follows its effects as a front-end would."""

    def __init__(self, *, resumed: bool = False) -> None:
        self.state = UiState()
        self.now = 100.0
        self.shown: list[int] = []
        self.effects: list[Effect] = []
        self.feed(opened(resumed=resumed))
        self.effects.clear()

    def feed(self, *inputs: AnyEvent | Intent) -> list[Effect]:
        made: list[Effect] = []
        for one in inputs:
            state, effects = step(self.state, one, self.now, 80)
            assert state is self.state
            for effect in effects:
                self._follow(effect)
            made += effects
        self.effects += made
        return made

    def after(self, seconds: float) -> Driver:
        self.now += seconds
        return self

    def type(self, text: str) -> list[Effect]:
        return self.feed(DraftChanged(text, len(text)))

    def _follow(self, effect: Effect) -> None:
        match effect:
            case ItemAdded(id=item_id):
                assert item_id not in self.shown
                self.shown.append(item_id)
            case ItemRemoved(id=item_id):
                self.shown.remove(item_id)
            case ItemChanged(id=item_id):
                assert item_id in self.shown
            case TranscriptReset() | OlderAdded():
                self.shown = list(self.state.transcript.items)
            case _:
                pass

    @property
    def items(self) -> list[Item]:
        """The transcript, which is also what a front-end that follows the effects has."""
        if not self.state.replaying:
            assert self.shown == list(self.state.transcript.items)
        return self.state.transcript.ordered()

    @property
    def last(self) -> Item:
        return self.items[-1]


def opened(*, resumed: bool = False) -> SessionOpenedEvent:
    return SessionOpenedEvent(
        session_id=SESSION, cwd="/home/me/project", model="offline/rules", mode="ask", resumed=resumed
    )


def started(kind="agent", submission_id="t") -> TaskStartedEvent:
    return TaskStartedEvent(session_id=SESSION, submission_id=submission_id, kind=kind)


def finished(kind="agent", submission_id="t", outcome="completed", error="") -> TaskFinishedEvent:
    return TaskFinishedEvent(session_id=SESSION, submission_id=submission_id, kind=kind, outcome=outcome, error=error)


def settled(outcome="completed") -> TaskSettledEvent:
    return TaskSettledEvent(session_id=SESSION, outcome=outcome)


def queue(*texts: tuple[int, str], waiting: bool = False) -> QueueChangedEvent:
    items = tuple(QueueItem(seq=seq, parts=(TextPart(text=text),)) for seq, text in texts)
    return QueueChangedEvent(session_id=SESSION, items=items, waiting=waiting)


def user(seq: int, text: str, from_queued: int = 0) -> UserMessageEvent:
    return UserMessageEvent(session_id=SESSION, seq=seq, parts=(TextPart(text=text),), from_queued=from_queued)


def approval(
    request_id: str = "r1", call_id: str = "c1", pattern: str = "git *", asked: int = 0, behind: int = 0
) -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        session_id=SESSION,
        request_id=request_id,
        call_id=call_id,
        tool="bash",
        summary="git push",
        detail="git push --force",
        reason="writes outside the workspace",
        kinds=kinds(pattern),
        asked=asked,
        behind=behind,
    )
