"""What the user is asked: the approvals that wait, and the answers that each offers. Read by both screens."""

from __future__ import annotations

import msgspec

from tenuto.protocol.entry import Mode
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.operation import Decision


class ApprovalOption(msgspec.Struct, frozen=True):
    """An answer that can be given. `feedback` asks for a text first; `mode` is the one that a plan is begun in.

    `pattern` is what will not be asked about again; it is part of what the user says yes to. `short` is the label
    where there is no room for it.
    """

    letter: str
    label: str
    decision: Decision
    feedback: bool = False
    mode: Mode | None = None
    pattern: str = ""
    short: str = ""


NO = ApprovalOption("n", "No", "deny")
"""What Esc answers."""
PLAN_OPTIONS = (
    ApprovalOption("y", "Yes, in mode edits: files without asking", "once", mode="edits", short="Yes, in mode edits"),
    ApprovalOption("m", "Yes, in mode ask: each change is asked for", "once", mode="ask", short="Yes, in mode ask"),
    ApprovalOption("a", "Yes, in mode auto: nothing is asked for", "once", mode="auto", short="Yes, in mode auto"),
    ApprovalOption(
        "f", "No, go on planning; say what to change", "deny", feedback=True, short="No, say what to change"
    ),
)


class Approvals(msgspec.Struct):
    """The approvals that wait, oldest first; the first one shows.

    `opened_at` is `None` while typing holds the panel back ("typing, waiting"). Answers before `accept_after` are
    ignored: they were meant for something else. `selected` is `None` over a draft: then Enter may be meant for that,
    and answers nothing. `feedback` is the text that goes with a denial, `None` when none is being written. `edited` is
    the plan as the user changed it, `unsaid` a feedback that Esc put away.
    """

    requests: list[ApprovalRequestedEvent] = msgspec.field(default_factory=list[ApprovalRequestedEvent])
    opened_at: float | None = None
    accept_after: float = 0.0
    selected: int | None = 0
    feedback: str | None = None
    unsaid: str = ""
    edited: str = ""

    @property
    def current(self) -> ApprovalRequestedEvent | None:
        """The request that shows, `None` when none is open."""
        return self.requests[0] if self.requests and self.opened_at is not None else None

    @property
    def held_back(self) -> bool:
        """Whether a request waits for a pause in typing."""
        return bool(self.requests) and self.opened_at is None

    @property
    def position(self) -> tuple[int, int]:
        """Which of the questions of one answer shows, and of how many: those that wait, and those to come."""
        first = self.requests[0].asked if self.requests else 0
        known = max((each.asked + 1 + each.behind for each in self.requests), default=0)
        return first + 1, max(known, first + len(self.requests))

    @property
    def plan(self) -> str:
        """The plan that shows, as the user left it; empty when it is no plan that asks."""
        request = self.current
        return (self.edited or request.detail) if request is not None and request.kind == "plan" else ""


def approval_options(request: ApprovalRequestedEvent) -> tuple[ApprovalOption, ...]:
    """Return the answers that a request offers, in the order of their number keys."""
    if request.kind == "plan":
        return PLAN_OPTIONS
    options = [ApprovalOption("y", "Yes, once", "once")]
    pattern = request.session_pattern
    if pattern:
        options.append(
            ApprovalOption(
                "a",
                "Yes, don't ask again this session",
                "session",
                pattern=pattern,
                short="Always this session",
            )
        )
    if pattern and request.lasting:
        options.append(
            ApprovalOption(
                "p",
                "Yes, don't ask again in this project",
                "project",
                pattern=pattern,
                short="Always this project",
            )
        )
    options.append(NO)
    options.append(
        ApprovalOption(
            "f",
            "No, and tell the model what to do instead",
            "deny",
            feedback=True,
            short="No, tell the model what to do",
        )
    )
    return tuple(options)
