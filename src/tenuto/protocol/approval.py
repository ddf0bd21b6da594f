"""Which answers a question of approval may have: the same for every front-end."""

from __future__ import annotations

import msgspec

from tenuto.protocol.entry import Mode
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.operation import Decision


class ApprovalOption(msgspec.Struct, frozen=True):
    """An answer that can be given. `feedback` asks for a text first; `mode` is the one that a plan is begun in.

    `covers` is what will not be asked about again; it is part of what the user says yes to. `short` is the label
    where there is no room for it. `choice` is the number of an answer that a question offers.
    """

    letter: str
    label: str
    decision: Decision
    feedback: bool = False
    mode: Mode | None = None
    covers: str = ""
    short: str = ""
    choice: int = 0


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


def approval_options(request: ApprovalRequestedEvent, kind: int = 0) -> tuple[ApprovalOption, ...]:
    """Return the answers that a request offers, in the order of their number keys; `kind` is what some cover."""
    if request.kind == "plan":
        return PLAN_OPTIONS
    if request.kind == "question":
        return tuple(
            ApprovalOption(answer.letter, answer.label, "once", feedback=answer.writes, choice=number)
            for number, answer in enumerate(request.answers)
        )
    options = [ApprovalOption("y", "Yes, once", "once")]
    if request.kinds:
        covers = request.kinds[kind].covers
        options.append(
            ApprovalOption(
                "a",
                "Yes, don't ask again this session",
                "session",
                covers=covers,
                short="Always this session",
            )
        )
        options.append(
            ApprovalOption(
                "p",
                "Yes, don't ask again in this project",
                "project",
                covers=covers,
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
