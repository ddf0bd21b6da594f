"""Questions to the user: an approval as a client asks it, and its answer as `tenuto.Agent` takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from acp.schema import PermissionOption, PermissionOptionKind, ToolCallUpdate

from tenuto.api.approving import Allow, Deny
from tenuto.api.words import describe_proposal
from tenuto.frontend.acp.calls import (
    Around,
    CallContent,
    diff_content,
    diff_locations,
    kind_of,
    text_block,
    text_content,
)
from tenuto.protocol.approval import ApprovalOption, approval_options
from tenuto.protocol.event import ApprovalRequestedEvent, CompactionProposedEvent
from tenuto.protocol.operation import Decision

MOST_KINDS = 3
"""Kinds of calls that can be allowed for longer and are offered: a client shows every option as a button."""
STOP = "No, and stop here: I say what to do instead"
"""Where nobody can be asked for a reason, the next prompt is the place for it."""
ACCEPT, DROP = "accept", "drop"
_KINDS: dict[Decision, PermissionOptionKind] = {
    "once": "allow_once",
    "session": "allow_always",
    "project": "allow_always",
    "deny": "reject_once",
}


class Offer(msgspec.Struct, frozen=True):
    """One answer that is offered, under its id; `kind` is which of the question's kinds it covers."""

    id: str
    option: ApprovalOption
    name: str
    kind: int = 0


def offers(event: ApprovalRequestedEvent, *, asks_reasons: bool) -> list[Offer]:
    """Return the answers to a question: those of the screens, and each kind of calls that can be allowed for longer."""
    return list(_offers(event, asks_reasons))


def _offers(event: ApprovalRequestedEvent, asks_reasons: bool) -> Iterator[Offer]:
    for place, option in enumerate(approval_options(event)):
        if option.decision in {"session", "project"}:
            for number, kind in enumerate(event.kinds[:MOST_KINDS]):
                yield Offer(f"{option.decision}-{number}", option, f"{option.label}: {kind.covers}", number)
        elif option.feedback and event.kind == "call" and not asks_reasons:
            yield Offer(f"answer-{place}", option, STOP)
        elif option.feedback and event.kind == "question" and not asks_reasons:
            continue  # nothing can be written there
        else:
            yield Offer(f"answer-{place}", option, option.label)


def permission_options(offered: list[Offer]) -> list[PermissionOption]:
    """Return the answers as the client shows them."""
    return [PermissionOption(option_id=one.id, name=one.name, kind=_KINDS[one.option.decision]) for one in offered]


def asked_call(event: ApprovalRequestedEvent, around: Around) -> ToolCallUpdate:
    """Return what the client shows with the question: the exact command, the changes, or the plan, and why it asks."""
    changes = [change for view in event.diffs for change in diff_content(view, around, proposed=True)]
    content: list[CallContent] = [*changes]
    words = [event.reason, *(kind.note for kind in event.kinds)]
    detail = event.detail if not content and event.detail != event.summary else ""
    if said := "\n\n".join(filter(None, (detail, *words))):
        content.append(text_content(said))
    who = f"{event.agent}: " if event.agent else ""
    about = event.summary if event.tool == "bash" or event.kind == "question" else f"{event.tool} {event.summary}"
    return ToolCallUpdate(
        tool_call_id=event.call_id or f"question-{event.request_id}",
        title=text_block(f"{who}{about}").text,
        kind="switch_mode" if event.kind == "plan" else kind_of(event.tool),
        status="pending",
        content=content,
        locations=diff_locations(event.diffs, around.cwd),
    )


def answer_of(offer: Offer | None, feedback: str = "") -> Allow | Deny:
    """Return what the user said; without an offer the question was put away, which allows nothing."""
    match offer:
        case None:
            return Deny()
        case Offer(option=ApprovalOption(decision="deny")):
            return Deny(feedback)
        case Offer(option=ApprovalOption(decision="once") as option):
            return Allow(mode=option.mode, choice=option.choice, text=feedback)
        case _:
            return Allow(kind=offer.kind, permanently=offer.option.decision == "project")


def proposal_call(event: CompactionProposedEvent) -> ToolCallUpdate:
    """Return a proposed compaction as the client shows it."""
    return ToolCallUpdate(
        tool_call_id=f"proposal-{event.submission_id}",
        title="Compact the conversation like this?",
        kind="think",
        status="pending",
        content=[text_content(describe_proposal(event))],
    )


PROPOSAL_OPTIONS = [
    PermissionOption(option_id=ACCEPT, name="Yes, write it", kind="allow_once"),
    PermissionOption(option_id=DROP, name="No, nothing changes", kind="reject_once"),
]
