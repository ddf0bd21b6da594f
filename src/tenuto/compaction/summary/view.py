"""What stands in the view before the kept tail: a compaction's `replacement`, frozen when it is made (DESIGN 5). Pure.

One system message with frame, summary, pins, todo list, running jobs and the user's own words; then for a split turn
its user message again as a real one. Nothing of the kept tail is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.compaction.data.ledger import LEDGER_TOKENS, Excerpt, keep_ledger
from tenuto.compaction.data.said import plain_text
from tenuto.compaction.images import bound_images
from tenuto.compaction.measure.meter import ContextSize
from tenuto.compaction.measure.weight import MESSAGE_OVERHEAD, estimate_message
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.prompts import RECALL_HINT, Prompts
from tenuto.compaction.summary.serialize import clip
from tenuto.protocol.entry import CONTINUE_LINE, SKILL_KIND, SkillEntry, TodoItem
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    UserMessage,
)
from tenuto.protocol.part import TextPart
from tenuto.text.estimate import estimate_text
from tenuto.text.writable import tagged

TODO_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-] cancelled:"}
PLAN_TOKENS = 3_000
"""What an approved plan has in the view after a compaction, at most; `recall` finds all of it."""
PLAN_NOTE = "The user approved this plan; what of it is done already is in the summary."
SKILLS_NOTE = "These skills were loaded; they stand here word for word and still hold."
SKILLS_LEFT = "Loaded earlier, without room here; load again what is of use: {names}"
LEDGER_HEAD = """\
What the user wrote before entry {cut}, in the user's words and in time order, behind the numbers of the entries; […] \
marks what is left out. Requests in it are dealt with, or are in the summary. Rules, limits and corrections in it hold \
until the user takes them back: a later message wins over an earlier one, and over the wording of the summary."""
MIN_TEXT = 40
"""Tokens below which cutting a user text is not worth it."""


class SessionData(msgspec.Struct, frozen=True, kw_only=True):
    """Session data that a compaction carries over as it is, never through the model (R-032).

    `pins` are texts, `plan` is the approved one, `jobs` are one line each; `recall` says that the model has the tool of
    that name. `notes` are texts that extensions add, bounded already. `skills` are the loaded ones that have room, and
    `skills_left` the names of those that have none.
    """

    pins: tuple[str, ...] = ()
    plan: str = ""
    todo: tuple[TodoItem, ...] = ()
    jobs: tuple[str, ...] = ()
    recall: bool = False
    notes: tuple[str, ...] = ()
    skills: tuple[SkillEntry, ...] = ()
    skills_left: tuple[str, ...] = ()


def build_replacement(
    plan: CompactionPlan, summary: str, session_data: SessionData, prompts: Prompts
) -> tuple[Message, ...]:
    """Return the messages that stand before the kept tail; `summary` ends with its file lists."""
    blocks = [_frame(plan.cut, prompts, session_data.recall), tagged("summary", summary)]
    blocks += session_blocks(session_data)
    room = plan.allowance.free - plan.kept_tokens - sum(estimate_text(block) for block in blocks)
    anchor = _anchor(plan, room)
    room -= estimate_message(anchor) if anchor is not None else 0
    texts = user_messages_block(plan, room)
    blocks += filter(None, (texts, skills_block(session_data, plan.kept)))
    system = SystemMessage(text="\n\n".join(blocks))
    return (system,) if anchor is None else (system, anchor)


def build_remote_replacement(
    plan: CompactionPlan, items: AssistantMessage, texts: Sequence[str], session_data: SessionData, prompts: Prompts
) -> tuple[Message, ...]:
    """Return the messages that stand before the kept tail when the provider itself compacted what was there.

    `items` are its own, first of the conversation; `texts` is what is told beside them, empty ones left out.
    """
    blocks = [_frame(plan.cut, prompts, session_data.recall), *filter(None, texts), *session_blocks(session_data)]
    taken = estimate_message(items) + sum(estimate_text(block) for block in blocks)
    anchor = _anchor(plan, plan.allowance.free - plan.kept_tokens - taken)
    blocks += filter(None, (skills_block(session_data, plan.kept),))
    system = SystemMessage(text="\n\n".join(blocks))
    return (system, items) if anchor is None else (system, items, anchor)


def _frame(cut: int, prompts: Prompts, recall: bool) -> str:
    texts = [prompts.summary_prefix, RECALL_HINT] if recall else [prompts.summary_prefix]
    return "\n".join(texts).replace("{seq}", str(max(0, cut - 1)))


def session_blocks(session_data: SessionData) -> list[str]:
    """Return pins, plan, todo list, running jobs and notes of extensions as tagged texts, without the empty ones."""
    blocks: list[str] = []
    if session_data.pins:
        blocks.append("\n".join(("<pins>", *session_data.pins, "</pins>")))
    if session_data.plan:
        blocks.append(tagged("approved-plan", f"{PLAN_NOTE}\n{clip_to_tokens(session_data.plan, PLAN_TOKENS)}"))
    if session_data.todo:
        lines = (f"- {TODO_MARKS[item.status]} {item.text}" for item in session_data.todo)
        blocks.append("\n".join(("<todo>", *lines, "</todo>")))
    if session_data.jobs:
        blocks.append("\n".join(("<running-jobs>", *session_data.jobs, "</running-jobs>")))
    if session_data.notes:
        blocks.append("\n".join(("<extension-notes>", *session_data.notes, "</extension-notes>")))
    return blocks


def with_skills(size: ContextSize, skills: Sequence[SkillEntry]) -> ContextSize:
    """Return the size with loaded skills as fixed parts: their room is not shared out among what can become less."""
    tokens = sum(estimate_text(skill.text) for skill in skills)
    return msgspec.structs.replace(size, system=size.system + round(tokens * size.calibration))


def skills_block(session_data: SessionData, kept: Sequence[HistoryEvent]) -> str:
    """Return the loaded skills that do not stand in the kept tail, word for word; empty when there are none."""
    told = {entry.kind for entry in kept if isinstance(entry, DeveloperMessage)}
    texts = [skill.text for skill in session_data.skills if f"{SKILL_KIND}{skill.seq}" not in told]
    lines = [SKILLS_NOTE, *texts] if texts else []
    if session_data.skills_left:
        lines.append(SKILLS_LEFT.format(names=", ".join(session_data.skills_left)))
    return "\n".join(("<loaded-skills>", *lines, "</loaded-skills>")) if lines else ""


def _anchor(plan: CompactionPlan, room: int) -> UserMessage | None:
    """Return the user message before the tail: the split turn's own, or a fixed line where an answer would be first.

    The split turn's message stays word for word (R-034), over the target if need be. One that would bring the whole
    over the trigger is cut in its middle, and comes under the target.
    """
    message = plan.turn_message
    if message is not None:
        bare = UserMessage(parts=bound_images(message.parts), origin=message.origin)
        most = room + plan.allowance.spare
        if estimate_message(bare) <= most:
            return bare
        limit = max(room, min(plan.allowance.user_messages, most))
        text = clip_to_tokens(plain_text(message), limit - MESSAGE_OVERHEAD)
        return UserMessage(parts=(TextPart(text=text),), origin=message.origin)
    if plan.kept and isinstance(plan.kept[0], AssistantMessage):
        return UserMessage(parts=(TextPart(text=CONTINUE_LINE),), origin="continuation")
    return None


def user_messages_block(plan: CompactionPlan, room: int) -> str:
    """Return what the user said before the kept tail, in time order (R-033).

    All of `room`, in estimated tokens, may be taken by what must stay, and the share of the user's words by the rest.
    Where the tail is larger than it should be, what must stay goes over the target, as far as the trigger.
    """
    shares = plan.allowance
    room = max(room, min(shares.user_floor, room + shares.spare))
    without = plan.turn_start if plan.turn_message else 0
    said = [one for one in plan.said if one.seq < plan.cut and one.seq != without]
    most = min(room, int(plan.budget.user_messages / plan.size.calibration)) - LEDGER_TOKENS
    kept = keep_ledger(said, min(most, shares.user_messages - LEDGER_TOKENS), most)
    if not kept:
        return ""
    messages = "\n".join(map(_message, kept))
    return f"<user-messages>\n{LEDGER_HEAD.format(cut=plan.cut)}\n{messages}\n</user-messages>"


def _message(one: Excerpt) -> str:
    """Return a text on a line of its own behind its entry's number, or between tags where it has several lines."""
    if "\n" in one.text:
        mark = f' corrected-by="{one.corrected_by}"' if one.corrected_by else ""
        return f'<message entry="{one.seq}"{mark}>\n{one.text}\n</message>'
    mark = f" (corrected by #{one.corrected_by})" if one.corrected_by else ""
    return f"#{one.seq}{mark}: {one.text}"


def clip_to_tokens(text: str, limit: int) -> str:
    """Return `text` with its middle cut out so that it is at most `limit` estimated tokens, or its bare beginning."""
    tokens = estimate_text(text)
    if tokens <= limit:
        return text
    keep = len(text) * max(0, limit) // tokens
    while keep > 2 * MIN_TEXT:
        clipped = clip(text, keep * 2 // 3, keep - keep * 2 // 3)
        if estimate_text(clipped) <= limit:
            return clipped
        keep = keep * 4 // 5
    return text[:keep]
