"""What a notification says, and the sequence that asks the terminal for it. Pure."""

from __future__ import annotations

from msgspec import Struct

from tenuto.guard.sanitize import sanitize_line
from tenuto.text.figures import format_seconds
from tenuto.tui.effects import Bell, BellReason
from tenuto.tui.emulator import NotificationForm
from tenuto.tui.machine.item import AssistantItem, CompactionItem, NoticeItem
from tenuto.tui.machine.state import UiState

BEL = "\x07"
NAME = "Tenuto"
TITLE_CHARACTERS, BODY_CHARACTERS = 80, 160
QUIET_SECONDS = 3.0
"""After a notification, none of the same or of lesser urgency for so long."""
URGENCY: dict[BellReason, int] = {"finished": 0, "failed": 1, "compaction": 1, "approval": 2}
WAITING: frozenset[BellReason] = frozenset({"approval"})
"""What stops until the user answers: called for even where nobody knows whether the terminal is looked at."""


class Notification(Struct, frozen=True):
    """One line that says where, one that says what; safe to print (R-088)."""

    title: str
    body: str


class Calls:
    """Decides whether the user is to be called. `after` is the seconds from which a finished run is worth it."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._last = -1
        self._at = float("-inf")
        self.looked_at: bool | None = None

    def wanted(self, bell: Bell, now: float) -> bool:
        """Say whether this is worth a call now, and remember it if so."""
        if self.looked_at or (self.looked_at is None and bell.reason not in WAITING):
            return False
        if bell.reason == "finished" and bell.seconds < self._after:
            return False
        urgency = URGENCY[bell.reason]
        if now - self._at < QUIET_SECONDS and urgency <= self._last:
            return False
        self._last, self._at = urgency, now
        return True


def describe_bell(bell: Bell, state: UiState) -> Notification:
    """Return what to tell somebody who does not see the screen."""
    where = state.status.title or state.status.cwd.rstrip("/").rpartition("/")[2]
    title = f"{NAME}: {where}" if where else NAME
    return Notification(_cut(title, TITLE_CHARACTERS), _cut(_what(bell, state), BODY_CHARACTERS))


def _what(bell: Bell, state: UiState) -> str:
    match bell.reason:
        case "approval":
            request = state.approvals.requests[-1] if state.approvals.requests else None
            if request is not None and request.tool == "plan":
                return "A plan waits for your answer"
            asked = f"{request.tool} {request.summary}".strip() if request is not None else ""
            return f"Approval needed: {asked}" if asked else "Approval needed"
        case "failed":
            return f"Failed: {_last_error(state)}"
        case "compaction":
            return f"Compaction failed: {_last_error(state)}"
        case "finished":
            answer = _last_answer(state)
            took = f"Finished in {format_seconds(bell.seconds)}"
            return f"{took}: {answer}" if answer else took


def _last_answer(state: UiState) -> str:
    for item in reversed(state.transcript.items.values()):
        if isinstance(item, AssistantItem):
            return next((line.strip("#*> -`") for line in item.text.splitlines() if line.strip()), "")
    return ""


def _last_error(state: UiState) -> str:
    for item in reversed(state.transcript.items.values()):
        if isinstance(item, NoticeItem) and item.level == "error":
            return item.text
        if isinstance(item, CompactionItem) and item.error:
            return item.error
    return "see the session"


def notification_sequence(notification: Notification, form: NotificationForm) -> str:
    """Return what asks the terminal for a desktop notification. Ends in BEL where screen is to pass it through."""
    title, body = notification.title, notification.body
    match form:
        case "osc9":
            return f"\x1b]9;{title}: {body}{BEL}"
        case "osc777":
            return f"\x1b]777;notify;{title.replace(';', ',')};{body.replace(';', ',')}{BEL}"
        case "osc99":
            # o=unfocused: the terminal knows best whether the user looks.
            return f"\x1b]99;i=tenuto:d=0:o=unfocused;{title}\x1b\\\x1b]99;i=tenuto:p=body;{body}\x1b\\"
        case "":
            return ""


def _cut(text: str, characters: int) -> str:
    line = sanitize_line(text)
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"
