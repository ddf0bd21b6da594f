"""All keys, once: what both front-ends bind, what `?`, `/keys` and `docs/terminal.md` list, what a user can change.

A key belongs to a context; the stack of open contexts (`UiState.contexts`) says which one gets it. Keys of "edit" are
what the editors know, for whatever nobody else takes. Who wants to know what holds, with the user's own keys, asks
the `Bindings` of the state.
"""

from __future__ import annotations

import functools

from tenuto.tui.keys.bindings import Bindings, ContextName, Key, key_label
from tenuto.tui.state.intents import (
    AcceptCompletion,
    AcceptSearch,
    ActOnBlock,
    ActOnChild,
    ActOnQueued,
    ActOnRow,
    AnswerApproval,
    AnswerApprovalWith,
    AnswerRow,
    Cancel,
    CompleteShell,
    CycleMode,
    CycleRowFilter,
    EditDraft,
    EditPlan,
    EndOfInput,
    Escape,
    FocusQueue,
    HistoryNext,
    HistoryPrevious,
    ImageDetached,
    LeaveChild,
    LeaveQueue,
    MoveApproval,
    MoveBlock,
    MoveCompletion,
    MoveInQueue,
    MoveMatch,
    MovePicker,
    MoveToBackground,
    OpenSearch,
    PickChoice,
    PickEffort,
    PickModel,
    RepaintScreen,
    ScrollPreview,
    SearchHistory,
    SendDraft,
    SteerDraft,
    SwitchKind,
    ToggleDetail,
    ToggleHelp,
    ToggleTodo,
    UnfoldPaste,
)

PAGE_ROWS = 10
PREVIEW_STEP = 4
KEYS: tuple[Key, ...] = (
    Key("send", ("enter", "ctrl+enter"), "prompt", SendDraft(), "send; while something runs, queue"),
    Key("newline", ("shift+enter", "ctrl+j", "alt+enter"), "prompt", None, "new line (also \\ and Enter)"),
    Key("steer", ("ctrl+s",), "prompt", SteerDraft(), "steer: send at the next tool boundary"),
    Key("queue", ("alt+q", "ctrl+x q"), "prompt", FocusQueue(), "go to what is queued: change, order, delete it"),
    Key("mode.cycle", ("shift+tab",), "prompt", CycleMode(), "next approval mode"),
    Key("model.pick", ("alt+p",), "prompt", PickModel(), "choose a model"),
    Key("effort.pick", ("alt+t",), "prompt", PickEffort(), "choose how hard the model thinks"),
    Key(
        "history.previous", ("up",), "prompt", HistoryPrevious(), "on the first line: earlier prompt, or edit the queue"
    ),
    Key("history.next", ("down",), "prompt", HistoryNext(), "on the last line: later prompt"),
    Key("history.search", ("ctrl+r",), "prompt", SearchHistory(), "search earlier prompts"),
    Key("editor", ("ctrl+g", "ctrl+x ctrl+e"), "prompt", EditDraft(), "write in your editor"),
    Key("paste.image", ("ctrl+v", "alt+v"), "prompt", None, "paste text or an image"),
    Key("shell.complete", ("tab",), "shell", CompleteShell(), "complete a program or a path"),
    Key("paste.unfold", ("tab",), "prompt", UnfoldPaste(), "at the mark of a long paste: show all of it"),
    Key("image.detach", ("backspace",), "prompt", ImageDetached(-1), "at the very start: take the last image out"),
    Key("search", ("ctrl+f",), "prompt", OpenSearch(), "search the transcript"),
    Key("block.begin_up", ("alt+up",), "prompt", MoveBlock(-1), "the block cursor: to the block above"),
    Key("block.begin_down", ("alt+down",), "prompt", MoveBlock(1), "the block cursor: to the block below"),
    Key("quit.end", ("ctrl+d",), "empty", EndOfInput(), "twice: quit"),
    Key("help.question", ("question_mark",), "empty", ToggleHelp(), "show the keys"),
    Key("background", ("ctrl+b",), "command", MoveToBackground(), "let it run on in the background, as a job"),
    Key("scroll.top", ("home",), "empty", None, "to the beginning of the transcript"),
    Key("scroll.bottom", ("end",), "empty", None, "to the end, and follow"),
    Key("queue.up", ("up", "k"), "queue", MoveInQueue(-1), "select"),
    Key("queue.down", ("down", "j"), "queue", MoveInQueue(1), "select"),
    Key(
        "queue.edit",
        ("enter", "e"),
        "queue",
        ActOnQueued("edit"),
        "back into the editor; sent again, it keeps its place",
    ),
    Key("queue.delete", ("d", "delete"), "queue", ActOnQueued("delete"), "delete; it stays in the history"),
    Key(
        "queue.steer", ("s",), "queue", ActOnQueued("steer"), "send at the next tool boundary, or in its turn after all"
    ),
    Key("queue.move_up", ("alt+up", "K"), "queue", ActOnQueued("up"), "move it up"),
    Key("queue.move_down", ("alt+down", "J"), "queue", ActOnQueued("down"), "move it down"),
    Key("queue.leave", ("alt+q",), "queue", LeaveQueue(), "back to the prompt"),
    Key("completion.up", ("up", "ctrl+p"), "completion", MoveCompletion(-1), "select"),
    Key("completion.down", ("down", "ctrl+n"), "completion", MoveCompletion(1), "select"),
    Key("completion.accept", ("tab",), "completion", AcceptCompletion(), "accept"),
    Key("completion.run", ("enter",), "completion", AcceptCompletion(send=True), "accept; run a whole command"),
    Key("approval.1", ("1",), "approval", AnswerApproval(0), "give the answer of that number"),
    Key("approval.2", ("2",), "approval", AnswerApproval(1)),
    Key("approval.3", ("3",), "approval", AnswerApproval(2)),
    Key("approval.4", ("4",), "approval", AnswerApproval(3)),
    Key("approval.5", ("5",), "approval", AnswerApproval(4)),
    Key("approval.6", ("6",), "approval", AnswerApproval(5)),
    Key("approval.7", ("7",), "approval", AnswerApproval(6)),
    Key("approval.8", ("8",), "approval", AnswerApproval(7)),
    Key("approval.9", ("9",), "approval", AnswerApproval(8)),
    Key("approval.once", ("y",), "approval", AnswerApprovalWith("y"), "allow once"),
    Key("approval.session", ("a",), "approval", AnswerApprovalWith("a"), "allow for this session"),
    Key("approval.project", ("p",), "approval", AnswerApprovalWith("p"), "allow in this project, permanently"),
    Key("approval.kind", ("tab",), "approval", SwitchKind(), "what an answer for longer covers: another kind of calls"),
    Key("approval.manual", ("m",), "approval", AnswerApprovalWith("m"), "of a plan: go ahead, ask before each change"),
    Key("approval.mode", ("shift+tab",), "approval", CycleMode(), "next approval mode, for the calls after this one"),
    Key("approval.edit", ("ctrl+g",), "approval", EditPlan(), "change the plan in your editor"),
    Key("approval.deny", ("n",), "approval", AnswerApprovalWith("n"), "deny"),
    Key("approval.feedback", ("f",), "approval", AnswerApprovalWith("f"), "deny and say why"),
    Key("approval.up", ("up", "k"), "approval", MoveApproval(-1), "select"),
    Key("approval.down", ("down", "j"), "approval", MoveApproval(1), "select"),
    Key("approval.confirm", ("enter",), "approval", AnswerApproval(), "give the selected answer"),
    Key("approval.full", ("ctrl+e",), "approval", None, "show all of the command, change or plan"),
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
    Key(
        "picker.rename", ("ctrl+r",), "picker", ActOnRow("rename"), "sessions: rename it; earlier prompts: an older one"
    ),
    Key(
        "picker.delete",
        ("ctrl+d", "delete"),
        "picker",
        ActOnRow("delete"),
        "trust: refuse it; sessions: delete it, jobs: end it, after a question "
        "(inside the filter's text: the character after)",
    ),
    Key("picker.fork", ("ctrl+g",), "picker", ActOnRow("fork"), "sessions: go on in a copy of it"),
    Key("row.answer", ("enter",), "row", AnswerRow(), "keep the new title; delete"),
    Key("help.up", ("up", "ctrl+p"), "help", None, "scroll; what is typed is searched for"),
    Key("help.down", ("down", "ctrl+n"), "help", None, "scroll"),
    Key("help.close", ("enter",), "help", ToggleHelp(), "close"),
    Key("search.up", ("up", "ctrl+p"), "search", MoveMatch(-1), "the match above"),
    Key("search.down", ("down", "ctrl+n", "shift+enter"), "search", MoveMatch(1), "the match below"),
    Key("search.accept", ("enter",), "search", AcceptSearch(), "stay there; then n and N go on"),
    Key("search.again", ("ctrl+f",), "search", MoveMatch(-1)),
    Key("found.up", ("n", "enter", "up"), "found", MoveMatch(-1), "the next match up"),
    Key("found.down", ("N", "shift+enter", "down"), "found", MoveMatch(1), "back down"),
    Key("found.copy", ("y",), "found", ActOnBlock("copy"), "copy the block of the match"),
    Key("found.open", ("o",), "found", ActOnBlock("open"), "read it in your pager"),
    Key("found.edit", ("ctrl+f",), "found", OpenSearch(), "look for something else"),
    Key("block.up", ("up", "alt+up"), "block", MoveBlock(-1), "to the block above"),
    Key("block.down", ("down", "alt+down"), "block", MoveBlock(1), "to the block below"),
    Key("block.search", ("ctrl+f",), "block", OpenSearch(), "search from here"),
    Key(
        "block.enter", ("enter",), "block", ActOnBlock("enter"), "read along with a sub-agent, else collapse or expand"
    ),
    Key("block.fold", ("space",), "block", ActOnBlock("fold"), "collapse or expand"),
    Key("block.copy", ("y", "c"), "block", ActOnBlock("copy"), "copy"),
    Key("block.edit", ("e",), "block", ActOnBlock("edit"), "put your message into the editor"),
    Key("block.rewind", ("r",), "block", ActOnBlock("rewind"), "go back to before your message"),
    Key("block.undo", ("u",), "block", ActOnBlock("undo"), "undo the compaction"),
    Key("block.transcript", ("t",), "block", ActOnBlock("transcript"), "read the sub-agent's transcript in your pager"),
    Key("block.stop", ("x",), "block", ActOnBlock("stop"), "end the sub-agent; its parent goes on"),
    Key("block.open", ("o",), "block", ActOnBlock("open"), "read it in your pager"),
    Key("child.up", ("up", "k"), "child", None, "scroll; the end follows what the sub-agent does"),
    Key("child.down", ("down", "j"), "child", None, "scroll"),
    Key("child.open", ("o", "t"), "child", ActOnChild("open"), "read all of it in your pager"),
    Key("child.stop", ("x",), "child", ActOnChild("stop"), "end the sub-agent; its parent goes on"),
    Key("child.close", ("enter", "q"), "child", LeaveChild(), "back"),
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
        "close, else interrupt; twice when idle: stash the draft, or go back to a message",
    ),
    Key("cancel", ("ctrl+c",), "global", Cancel(), "clear the draft, else interrupt, else twice: quit"),
    Key("detail", ("ctrl+o",), "global", ToggleDetail(), "collapse or expand tool output and thinking"),
    Key("todo", ("ctrl+t",), "global", ToggleTodo(), "todo list: show all, hide, show again"),
    Key("repaint", ("ctrl+l",), "global", RepaintScreen(), "paint the screen again"),
    Key("help", ("f1",), "global", ToggleHelp(), "show the keys"),
    Key("suspend", ("ctrl+z",), "global", None, "suspend"),
    Key("edit.left", ("left", "ctrl+b"), "edit", None, "a character back"),
    Key("edit.right", ("right",), "edit", None, "a character on"),
    Key("edit.word_left", ("alt+b", "ctrl+left", "alt+left"), "edit", None, "a word back"),
    Key("edit.word_right", ("alt+f", "ctrl+right", "alt+right"), "edit", None, "a word on"),
    Key("edit.line_start", ("ctrl+a", "home"), "edit", None, "to the beginning of the line"),
    Key("edit.line_end", ("ctrl+e", "end"), "edit", None, "to the end of the line"),
    Key("edit.backspace", ("backspace", "ctrl+h"), "edit", None, "delete the character before"),
    Key("edit.delete", ("delete", "ctrl+d"), "edit", None, "delete the character after"),
    Key("edit.cut_word_left", ("alt+backspace", "ctrl+backspace"), "edit", None, "cut the word before"),
    Key("edit.cut_blank_left", ("ctrl+w",), "edit", None, "cut back to a blank: a whole path"),
    Key("edit.cut_word_right", ("alt+d", "alt+delete"), "edit", None, "cut the word after"),
    Key("edit.cut_line_left", ("ctrl+u", "super+backspace"), "edit", None, "cut to the beginning of the line"),
    Key("edit.cut_line_right", ("ctrl+k",), "edit", None, "cut to the end of the line"),
    Key("edit.yank", ("ctrl+y",), "edit", None, "insert what was cut"),
    Key("edit.yank_older", ("alt+y",), "edit", None, "then insert what was cut before that"),
    Key("edit.undo", ("ctrl+underscore", "ctrl+slash", "super+z"), "edit", None, "undo"),
    Key("edit.redo", ("ctrl+shift+z",), "edit", None, "redo"),
)
CONTEXT_TITLES: dict[ContextName, str] = {
    "prompt": "Prompt",
    "shell": "In a !command",
    "empty": "Empty prompt",
    "command": "Empty prompt, while a command runs",
    "edit": "Editing",
    "queue": "Queue",
    "completion": "Completion",
    "approval": "Approval",
    "feedback": "Feedback",
    "picker": "Lists",
    "row": "Renaming, deleting in a list",
    "help": "Help",
    "search": "Search",
    "found": "After a search",
    "block": "Block cursor",
    "child": "Transcript of a sub-agent",
    "transcript": "Transcript",
    "global": "Everywhere",
}
PREFIXES = (
    ("/", "a command"),
    ("@", "a file"),
    ("!", "run in the shell"),
    ("!!", "run, and keep it from the model"),
    ("# ", "remember a line"),
)


@functools.cache
def default_bindings() -> Bindings:
    """Return the table as it comes."""
    return Bindings(KEYS)


def help_rows(bindings: Bindings) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the help as sections: a title and its rows of keys and meaning."""
    sections = [("At the start of a prompt", list(PREFIXES))]
    for context, title in CONTEXT_TITLES.items():
        rows = [
            (", ".join(map(key_label, row.keys)), row.help)
            for row in bindings.rows
            if row.context == context and row.help and row.keys
        ]
        sections.append((title, rows))
    return [section for section in sections if section[1]]


def help_text(bindings: Bindings) -> str:
    """Return the help as plain text, its columns aligned."""
    sections = help_rows(bindings)
    width = max(len(keys) for _, rows in sections for keys, _ in rows)
    blocks = ["\n".join([title, *(f"  {keys:<{width}}  {text}" for keys, text in rows)]) for title, rows in sections]
    return "\n\n".join(blocks)


def key_list(bindings: Bindings, path: str) -> str:
    """Return all bindings with their ids as plain text, what the user has changed marked, and where that is."""
    width = max(len(row.id) for row in bindings.rows)
    blocks: list[str] = []
    for context, title in CONTEXT_TITLES.items():
        rows = [row for row in bindings.rows if row.context == context]
        lines = [
            f"{'*' if row.id in bindings.changed else ' '} {row.id:<{width}}  {bindings.labels(row.id) or 'none'}"
            for row in rows
        ]
        blocks.append("\n".join([title, *lines]))
    marked = "Marked with * is what you have changed. " if bindings.changed else ""
    blocks.append(f"{marked}Your own keys are in {path}; /keys edit opens it, /reload reads it again.")
    return "\n\n".join(blocks)
