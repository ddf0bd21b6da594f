"""All keys, once: what both front-ends bind, what `/help` prints and what is looked up when a key comes.

Keys are named as Textual names them ("shift+tab", "ctrl+o", "pageup"). A key belongs to a context; the stack of open
contexts (`UiState.contexts`) says which one gets it. A row without an intent is done by the screen itself, by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenuto.tui.machine.intent import (
    AcceptCompletion,
    AnswerApproval,
    AnswerApprovalWith,
    Cancel,
    CycleMode,
    CycleRowFilter,
    EditDraft,
    EndOfInput,
    Escape,
    HistoryNext,
    HistoryPrevious,
    Intent,
    MoveApproval,
    MoveCompletion,
    MovePicker,
    PickChoice,
    PickModel,
    RepaintScreen,
    ScrollPreview,
    SearchHistory,
    SendDraft,
    SteerDraft,
    ToggleDetail,
    ToggleHelp,
    ToggleTodo,
)
from tenuto.tui.machine.state import ContextName


@dataclass(frozen=True, slots=True)
class Key:
    """One binding. `help` is empty for keys that need no line in the help."""

    id: str
    keys: tuple[str, ...]
    context: ContextName
    intent: Intent | None
    help: str = ""


PAGE_ROWS = 10
PREVIEW_STEP = 4
KEYS: tuple[Key, ...] = (
    Key("send", ("enter",), "prompt", SendDraft(), "send; while something runs, queue"),
    Key("newline", ("shift+enter", "ctrl+j", "alt+enter"), "prompt", None, "new line (also \\ and Enter)"),
    Key("steer", ("ctrl+s",), "prompt", SteerDraft(), "send now, at the next tool boundary"),
    Key("mode.cycle", ("shift+tab",), "prompt", CycleMode(), "next approval mode"),
    Key("model.pick", ("alt+p",), "prompt", PickModel(), "choose a model"),
    Key(
        "history.previous", ("up",), "prompt", HistoryPrevious(), "on the first line: earlier prompt, or edit the queue"
    ),
    Key("history.next", ("down",), "prompt", HistoryNext(), "on the last line: later prompt"),
    Key("history.search", ("ctrl+r",), "prompt", SearchHistory(), "search earlier prompts"),
    Key("editor", ("ctrl+g",), "prompt", EditDraft(), "write in your editor"),
    Key("paste.image", ("ctrl+v", "alt+v"), "prompt", None, "paste text or an image"),
    Key("quit.end", ("ctrl+d",), "empty", EndOfInput(), "twice: quit"),
    Key("help.question", ("question_mark",), "empty", ToggleHelp(), "show the keys"),
    Key("scroll.top", ("home",), "empty", None, "to the beginning of the transcript"),
    Key("scroll.bottom", ("end",), "empty", None, "to the end, and follow"),
    Key("completion.up", ("up", "ctrl+p"), "completion", MoveCompletion(-1), "select"),
    Key("completion.down", ("down", "ctrl+n"), "completion", MoveCompletion(1), "select"),
    Key("completion.accept", ("tab",), "completion", AcceptCompletion(), "accept"),
    Key("completion.run", ("enter",), "completion", AcceptCompletion(send=True), "accept; run a whole command"),
    Key("approval.1", ("1",), "approval", AnswerApproval(0), "give the answer of that number"),
    Key("approval.2", ("2",), "approval", AnswerApproval(1)),
    Key("approval.3", ("3",), "approval", AnswerApproval(2)),
    Key("approval.4", ("4",), "approval", AnswerApproval(3)),
    Key("approval.once", ("y",), "approval", AnswerApprovalWith("y"), "allow once"),
    Key("approval.session", ("a",), "approval", AnswerApprovalWith("a"), "allow for this session"),
    Key("approval.deny", ("n",), "approval", AnswerApprovalWith("n"), "deny"),
    Key("approval.feedback", ("f",), "approval", AnswerApprovalWith("f"), "deny and say why"),
    Key("approval.up", ("up", "k"), "approval", MoveApproval(-1), "select"),
    Key("approval.down", ("down", "j"), "approval", MoveApproval(1), "select"),
    Key("approval.confirm", ("enter",), "approval", AnswerApproval(), "give the selected answer"),
    Key("approval.full", ("ctrl+e",), "approval", None, "show all of the command or change"),
    Key("feedback.confirm", ("enter",), "feedback", AnswerApproval(), "deny with this text"),
    Key("picker.up", ("up", "ctrl+p"), "picker", MovePicker(-1), "select"),
    Key("picker.down", ("down", "ctrl+n"), "picker", MovePicker(1), "select"),
    Key("picker.page_up", ("pageup",), "picker", MovePicker(-PAGE_ROWS)),
    Key("picker.page_down", ("pagedown",), "picker", MovePicker(PAGE_ROWS)),
    Key("picker.filter", ("tab",), "picker", CycleRowFilter(1), "other rows, where the list has filters"),
    Key("picker.filter_back", ("shift+tab",), "picker", CycleRowFilter(-1)),
    Key("picker.preview_up", ("shift+up",), "picker", ScrollPreview(-PREVIEW_STEP), "scroll the preview"),
    Key("picker.preview_down", ("shift+down",), "picker", ScrollPreview(PREVIEW_STEP), "scroll the preview"),
    Key("picker.pick", ("enter",), "picker", PickChoice(), "take it"),
    Key("help.close", ("q", "enter", "question_mark"), "help", ToggleHelp(), "close"),
    Key("scroll.page_up", ("pageup",), "transcript", None, "scroll a page up"),
    Key("scroll.page_down", ("pagedown",), "transcript", None, "scroll a page down"),
    Key("scroll.line_up", ("shift+up",), "transcript", None, "scroll a line up"),
    Key("scroll.line_down", ("shift+down",), "transcript", None, "scroll a line down"),
    Key("scroll.begin", ("ctrl+home",), "transcript", None, "to the beginning of the transcript"),
    Key("scroll.follow", ("ctrl+end",), "transcript", None, "to the end, and follow"),
    Key(
        "escape",
        ("escape",),
        "global",
        Escape(),
        "close, else interrupt; twice when idle: put the draft aside, or go back to a message",
    ),
    Key("cancel", ("ctrl+c",), "global", Cancel(), "clear the draft, else interrupt, else twice: quit"),
    Key("detail", ("ctrl+o",), "global", ToggleDetail(), "fold or unfold tool output and thinking"),
    Key("todo", ("ctrl+t",), "global", ToggleTodo(), "show all of the todo list"),
    Key("repaint", ("ctrl+l",), "global", RepaintScreen(), "paint the screen again"),
    Key("help", ("f1",), "global", ToggleHelp(), "show the keys"),
    Key("suspend", ("ctrl+z",), "global", None, "suspend"),
)
CONTEXT_TITLES: dict[ContextName, str] = {
    "prompt": "Prompt",
    "empty": "Empty prompt",
    "completion": "Completion",
    "approval": "Approval",
    "feedback": "Feedback",
    "picker": "Lists",
    "help": "Help",
    "transcript": "Transcript",
    "global": "Everywhere",
}
PREFIXES = (("/", "a command"), ("@", "a file"), ("!", "run in the shell"), ("!!", "run, and keep it from the model"))
NAMES = {
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "escape": "Esc",
    "enter": "Enter",
    "question_mark": "?",
    "up": "↑",
    "down": "↓",
}
_BY_CONTEXT = {(row.context, key): row for row in KEYS for key in row.keys}


def find_key(contexts: Sequence[ContextName], key: str) -> Key | None:
    """Return the binding of the topmost context that has the key, `None` when the key is for typing."""
    for context in contexts:
        row = _BY_CONTEXT.get((context, key))
        if row is not None:
            return row
    return None


def key_name(key: str) -> str:
    """Return a key as people write it: `Ctrl+O`, `Shift+Tab`, `PageUp`."""
    parts = key.split("+")
    return "+".join(
        NAMES.get(part) or (part.capitalize() if len(part) > 1 or len(parts) > 1 else part) for part in parts
    )


def help_rows() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the help as sections: a title and its rows of keys and meaning."""
    sections = [("At the start of a prompt", list(PREFIXES))]
    for context, title in CONTEXT_TITLES.items():
        rows = [
            (", ".join(key_name(key) for key in row.keys), row.help)
            for row in KEYS
            if row.context == context and row.help
        ]
        sections.append((title, rows))
    return sections


def help_text() -> str:
    """Return the help as plain text, its columns aligned."""
    sections = help_rows()
    width = max(len(keys) for _, rows in sections for keys, _ in rows)
    blocks = ["\n".join([title, *(f"  {keys:<{width}}  {text}" for keys, text in rows)]) for title, rows in sections]
    return "\n\n".join(blocks)
