"""Dialogs as numbered lists: what is asked is printed once, and the next line is the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenuto.command.registry import find_command
from tenuto.guard.sanitize import sanitize_for_terminal, sanitize_line
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.keyboard import Machine
from tenuto.tui.keys import help_text
from tenuto.tui.machine import intent as intents
from tenuto.tui.machine.asked import approval_options
from tenuto.tui.machine.state import Picker, UiState
from tenuto.tui.panels import approval_detail
from tenuto.tui.panels.approval import option_label, plan_lines
from tenuto.tui.render.options import RenderOptions, glyphs_for

PICKER_ROWS = 20
OTHER_ROWS = "+"
"""What is answered to see the rows of the list's next filter."""
ASKING = frozenset({"approval", "feedback", "picker"})


def wanted_answer(state: UiState) -> bool:
    """Say whether the next line answers something."""
    return state.contexts[0] in ASKING


class Menus:
    """`news` gives what is asked since it was called last, `take` gives a line to what is asked."""

    def __init__(self, machine: Machine, columns: int, options: RenderOptions) -> None:
        self._machine = machine
        self._columns = columns
        self._glyphs = glyphs_for(options)
        self._asked: object = None

    # --- asking ---

    def news(self) -> list[str]:
        """Return the lines of a question that has not been printed yet."""
        state = self._machine.state
        if state.help_open:
            self._machine.handle(intents.ToggleHelp())
            return help_text(state.keys).split("\n")
        request, picker = state.approvals.current, state.picker
        asked: object = None
        if request is not None:
            asked = (request.request_id, state.contexts[0])
        elif picker is not None:
            asked = (id(picker), picker.filter, picker.row_filter)
        if asked == self._asked:
            return []
        self._asked = asked
        if request is not None:
            return self._approval(state, request)
        return _picker(picker) if picker is not None else []

    def _approval(self, state: UiState, request: ApprovalRequestedEvent) -> list[str]:
        if state.approvals.feedback is not None:
            return ["What shall be done instead? An empty line just says no:"]
        position, total = state.approvals.position
        count = f" ({position} of {total})" if total > 1 else ""
        if request.kind == "plan":
            lines = [f"Go ahead with this plan?{count}"]
            lines += [line.text.rstrip() for line in plan_lines(request.detail, self._columns, self._glyphs)]
        else:
            lines = [f"Allow {sanitize_line(request.tool)}?{count} {sanitize_line(request.summary)}"]
            lines += [f"Why it is asked: {sanitize_line(request.reason)}"] if request.reason else []
            lines += [line.text.rstrip() for line in approval_detail(request, self._columns - 4, self._glyphs)]
        for number, option in enumerate(approval_options(request), 1):
            lines.append(f"{number}. {option_label(option, request)}")
        return [*lines, "Answer with a number:"]

    # --- answers ---

    def take(self, line: str, now: float, say: Callable[[Sequence[str]], None]) -> bool:
        """Take a line as an answer; `False` when nothing is asked."""
        state = self._machine.state
        match state.contexts[0]:
            case "approval":
                self._answer(line.strip().lower(), now, say)
            case "feedback":
                self._machine.handle(intents.FeedbackChanged(line))
                self._machine.handle(intents.AnswerApproval())
            case "picker":
                return self._pick(line.strip())
            case _:
                return False
        return True

    def _answer(self, word: str, now: float, say: Callable[[Sequence[str]], None]) -> None:
        approvals = self._machine.state.approvals
        request = approvals.current
        if request is None:
            return
        options = approval_options(request)
        if now < approvals.accept_after:
            say(["This was asked only just now. Answer with a number:"])
        elif word.isdecimal() and 0 < int(word) <= len(options):
            self._machine.handle(intents.AnswerApproval(int(word) - 1))
        elif word in [option.letter for option in options]:
            self._machine.handle(intents.AnswerApprovalWith(word))
        else:
            say([f"Answer with a number from 1 to {len(options)}:"])

    def _pick(self, word: str) -> bool:
        """Take a number, a filter, or an empty line; a command closes the list: `False`, it is to be run.

        What can be done with a row stands behind its number: `2 rename TITLE`.
        """
        picker = self._machine.state.picker
        number, _, act = word.partition(" ")
        if word.startswith("/") and find_command(word[1:].partition(" ")[0]) is not None:
            self._machine.handle(intents.Escape())
            return False
        if picker is None or not word:
            self._machine.handle(intents.Escape())
        elif word.isdecimal() and 0 < int(word) <= len(picker.shown):
            self._machine.handle(intents.PickChoice(int(word) - 1))
        elif word == OTHER_ROWS and picker.filters:
            self._machine.handle(intents.CycleRowFilter(1))
        elif number.isdecimal() and act.split(" ")[0] in picker.acts and 0 < int(number) <= len(picker.shown):
            value = picker.choices[picker.shown[int(number) - 1]].value
            self._machine.handle(intents.Escape())
            self._machine.handle(intents.SendText(f"/{picker.command} {value} {act}"))
        else:
            self._machine.handle(intents.FilterChanged(word))
        return True


def _picker(picker: Picker) -> list[str]:
    lines = [sanitize_line(picker.title)]
    previews = {choice.preview for choice in picker.choices}
    if len(previews) == 1:  # all rows are about the same text
        lines += [sanitize_for_terminal(preview) for preview in previews if preview]
    for number, place in enumerate(picker.shown[:PICKER_ROWS], 1):
        choice = picker.choices[place]
        detail = f", {sanitize_line(choice.detail)}" if choice.detail else ""
        lines.append(f"{number}. {sanitize_line(choice.label)}{detail}")
    if len(picker.shown) > PICKER_ROWS:
        lines.append(f"and {len(picker.shown) - PICKER_ROWS} more")
    if not picker.shown:
        lines.append("Nothing matches.")
    if picker.filters:
        present, following = (picker.filters[(picker.row_filter + step) % len(picker.filters)].name for step in (0, 1))
        lines.append(f"These are: {present}. {OTHER_ROWS} shows: {following}.")
    if picker.acts:
        examples = [f"1 {act} TITLE" if act == "rename" else f"1 {act}" for act in picker.acts]
        lines.append(f"To change one: {', '.join(examples)}.")
    return [*lines, "A number takes it, a word looks for it, an empty line closes:"]
