"""The approval panel. It never steals keys (DESIGN section 9).

It opens in a pause of typing only, and for a moment after it has opened it takes no answer: a key that was under way
was meant for something else. Whoever types on has it go away until the next pause. Several requests wait in order,
each answered for itself. A plan that asks for approval is one of them.
"""

from __future__ import annotations

from tenuto.protocol.approval import NO, ApprovalOption
from tenuto.protocol.event import ApprovalRequestedEvent, ApprovalResolvedEvent
from tenuto.protocol.operation import AnswerApprovalOperation, Decision
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.queue import remember
from tenuto.tui.machine.turn import find_call, label_running_calls
from tenuto.tui.state.effects import Bell, OpenEditor, Submit
from tenuto.tui.state.intents import (
    AnswerApproval,
    AnswerApprovalWith,
    EditPlan,
    FeedbackChanged,
    MoveApproval,
    PlanEdited,
    SwitchKind,
)
from tenuto.tui.state.item import ToolItem, ToolState

TYPING_PAUSE = 1.0
"""Seconds without a key before the panel opens over a draft, a list or a search."""
EMPTY_PAUSE = 0.3
"""The same with an empty editor, and nothing open."""
GRACE = 0.5
"""Seconds after opening in which answers are ignored."""
CHOOSE_HINT = "Choose with ↑ ↓ first: Enter could be meant for what you were typing"
HINT_SECONDS = 3.0


@on(ApprovalRequestedEvent)
def request_approval(change: Change, event: ApprovalRequestedEvent) -> None:
    """A call waits for the user: call them, and open the panel as soon as they do not type."""
    change.state.approvals.requests.append(event)
    mark_call(change, event.call_id, "waiting")
    change.emit(Bell("approval"))
    change.panel()
    open_if_due(change)


@on(ApprovalResolvedEvent)
def resolve_approval(change: Change, event: ApprovalResolvedEvent) -> None:
    """It is answered elsewhere, or no longer needed. After an answer given here there is nothing left to do."""
    requests = change.state.approvals.requests
    request = next((each for each in requests if each.request_id == event.request_id), None)
    if request is not None:
        mark_answered(change, request, event.decision)
        close_request(change, request)


@on(MoveApproval)
def move_selection(change: Change, intent: MoveApproval) -> None:
    """Select another answer; it stops at the ends."""
    approvals = change.state.approvals
    if approvals.current is not None:
        last = len(approvals.options) - 1
        before = approvals.selected
        if before is None:
            approvals.selected = 0 if intent.delta > 0 else last
        else:
            approvals.selected = max(0, min(last, before + intent.delta))
        change.panel()


@on(SwitchKind)
def switch_kind(change: Change, _intent: SwitchKind) -> None:
    """Have the answers for longer cover the next kind; it answers nothing, and works over a draft too."""
    approvals = change.state.approvals
    if approvals.current is not None and len(approvals.current.kinds) > 1 and approvals.feedback is None:
        approvals.kind = (approvals.kind + 1) % len(approvals.current.kinds)
        change.panel()


@on(AnswerApproval)
def answer_by_place(change: Change, intent: AnswerApproval) -> None:
    """Give the answer with that number, or the selected one if there is one; with a feedback open, deny with it."""
    approvals = change.state.approvals
    if approvals.current is None:
        return
    options = approvals.options
    if approvals.feedback is not None:
        give_answer(change, next(option for option in options if option.feedback))
        return
    place = approvals.selected if intent.index is None else intent.index
    if place is None:
        change.hint(CHOOSE_HINT, HINT_SECONDS)
    elif 0 <= place < len(options):
        choose(change, options[place], place)


@on(AnswerApprovalWith)
def answer_by_letter(change: Change, intent: AnswerApprovalWith) -> None:
    """Give the answer with that letter."""
    approvals = change.state.approvals
    if approvals.current is None:
        return
    for place, option in enumerate(approvals.options):
        if option.letter == intent.letter:
            choose(change, option, place)
            return


@on(FeedbackChanged)
def set_feedback(change: Change, intent: FeedbackChanged) -> None:
    """The feedback is being written."""
    approvals = change.state.approvals
    if approvals.feedback is not None and approvals.feedback != intent.text:
        approvals.feedback = intent.text
        change.panel()


@on(EditPlan)
def edit_plan(change: Change, _intent: EditPlan) -> None:
    """Open the plan in the user's editor; it asks on behind it."""
    approvals = change.state.approvals
    if approvals.plan and change.now >= approvals.accept_after:
        change.emit(OpenEditor(approvals.plan, approvals.requests[0].request_id))


@on(PlanEdited)
def take_plan(change: Change, intent: PlanEdited) -> None:
    """What the editor made of it is the plan that can be approved now."""
    approvals = change.state.approvals
    request = next((each for each in approvals.requests if each.request_id == intent.request_id), None)
    if request is None:
        remember(change, intent.text)
        change.toast(
            "The plan is not asked about any more; as you changed it it is in the history: press Up", "warning"
        )
        return
    approvals.edited = intent.text if intent.text.strip() and intent.text != request.detail else ""
    approvals.accept_after = change.now + GRACE
    change.panel()


def hold_back(change: Change) -> None:
    """The user types: the panel makes room until they pause. A feedback is typed in the panel itself."""
    approvals = change.state.approvals
    if approvals.current is not None and approvals.feedback is None:
        approvals.opened_at = None
        change.panel()
        change.status()


def note_typing(change: Change) -> None:
    """The user types, or chooses, elsewhere than in the prompt: the panel waits for a pause in that as well."""
    change.state.draft.changed_at = change.now


def deny_current(change: Change) -> None:
    """Esc: leave the feedback, else deny the request that shows, and only that one."""
    approvals = change.state.approvals
    if approvals.current is None:
        return
    if approvals.feedback is not None:
        approvals.feedback, approvals.unsaid = None, approvals.feedback
        change.panel()
    elif change.now >= approvals.accept_after:
        give_answer(change, NO)


def open_if_due(change: Change) -> None:
    """Open the panel for the oldest request, unless the user is typing."""
    state = change.state
    if not state.approvals.held_back:
        return
    idle = state.draft.empty and state.contexts[0] == "empty"
    pause = EMPTY_PAUSE if idle else TYPING_PAUSE
    if change.now - state.draft.changed_at >= pause:
        show_request(change)


def show_request(change: Change) -> None:
    """Show the oldest request and begin its grace."""
    approvals = change.state.approvals
    approvals.opened_at = change.now
    approvals.accept_after = change.now + GRACE
    approvals.selected = None if change.state.draft.begun else 0
    approvals.feedback = None
    approvals.kind = 0
    change.panel()
    change.status()


def choose(change: Change, option: ApprovalOption, place: int) -> None:
    """Take an answer, if it can have been meant for this request; ask for the feedback where it has one."""
    approvals = change.state.approvals
    if change.now < approvals.accept_after:
        return
    approvals.selected = place
    if option.feedback:
        approvals.feedback = approvals.unsaid
        change.panel()
    else:
        give_answer(change, option)


def give_answer(change: Change, option: ApprovalOption) -> None:
    """Hand the answer to the core and go on to the next request."""
    approvals = change.state.approvals
    request = approvals.current
    if request is None:
        return
    feedback = (approvals.feedback or "").strip() if option.feedback else ""
    change.emit(
        Submit(
            AnswerApprovalOperation(
                session_id=request.session_id,
                request_id=request.request_id,
                decision=option.decision,
                feedback=feedback,
                kind=approvals.kind,
                mode=option.mode,
                plan=approvals.edited,
                choice=option.choice,
            )
        )
    )
    mark_answered(change, request, option.decision)
    if option.feedback:
        approvals.feedback, approvals.unsaid = None, ""
    close_request(change, request)


def close_request(change: Change, request: ApprovalRequestedEvent) -> None:
    """Take a request off the list; the next one shows with a grace of its own. Words that nobody heard are kept."""
    approvals = change.state.approvals
    was_current, was_first = approvals.current is request, approvals.requests[0] is request
    approvals.requests.remove(request)
    if change.state.hint is not None and change.state.hint.text == CHOOSE_HINT:
        change.state.hint = None
        change.status()
    if was_first:
        remember(change, approvals.feedback or approvals.unsaid)
        approvals.feedback, approvals.unsaid, approvals.edited = None, "", ""
    if not approvals.requests:
        approvals.opened_at = None
    elif was_current:
        show_request(change)
    change.panel()


def mark_answered(change: Change, request: ApprovalRequestedEvent, decision: Decision) -> None:
    """Show what became of the call. A plan that is not approved was not denied: planning goes on."""
    denied = decision == "deny" and request.kind == "call" and not request.agent  # a sub-agent goes on without it
    mark_call(change, request.call_id, "denied" if denied else "running")


def mark_call(change: Change, call_id: str, call_state: ToolState) -> None:
    """Show on the call that it waits, runs or was denied. Waiting does not count as running time."""
    item = find_call(change, call_id)
    if item is None or item.final:
        return
    item.state = call_state
    if call_state == "running":
        change.start_clock(item)
    else:
        stop_and_forget(change, item)
    change.touch(item)
    label_running_calls(change)


def stop_and_forget(change: Change, item: ToolItem) -> None:
    """Stop the seconds and show none."""
    change.stop_clock(item, 0.0)
