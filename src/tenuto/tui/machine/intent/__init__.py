"""What the user did, or what the front-end learned: the second kind of input of `step`.

Keys become intents by the table in `tui/keys.py`. Which box an arrow key belongs to is decided there, by the stack of
contexts; an intent means one thing only.
"""

from __future__ import annotations

from tenuto.tui.machine.intent.choosing import (
    ActOnRow,
    AnswerApproval,
    AnswerApprovalWith,
    AnswerRow,
    ChoiceOffered,
    CycleRowFilter,
    EditPlan,
    FeedbackChanged,
    FilterChanged,
    MoveApproval,
    MovePicker,
    PickChoice,
    PlanEdited,
    RowAnswerChanged,
    RowReplaced,
    ScrollPreview,
    ThemeChosen,
)
from tenuto.tui.machine.intent.editing import (
    AcceptCompletion,
    ActOnQueued,
    CompleteShell,
    CompletionOffered,
    DraftChanged,
    DraftRestored,
    EditDraft,
    FocusQueue,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    ImageAttached,
    ImageDetached,
    ImageRefused,
    LeaveQueue,
    MoveCompletion,
    MoveInQueue,
    SearchHistory,
    SendDraft,
    SendFailed,
    SendText,
    SteerDraft,
    UnfoldPaste,
)
from tenuto.tui.machine.intent.ending import (
    Cancel,
    EndOfInput,
    Escape,
    Leave,
    LeaveAsked,
)
from tenuto.tui.machine.intent.looking import (
    AcceptSearch,
    ActOnBlock,
    CopyOffered,
    LeaveTranscript,
    MouseChosen,
    MoveBlock,
    MoveMatch,
    OpenSearch,
    PageOffered,
    SearchChanged,
)
from tenuto.tui.machine.intent.telling import (
    BranchRead,
    ChordChanged,
    CommandLasts,
    ContextShown,
    CycleMode,
    Failed,
    FileOffered,
    HelpFilterChanged,
    KeyboardKnown,
    KeysLoaded,
    PickModel,
    RepaintScreen,
    Said,
    ShowEarlier,
    TextOffered,
    Tick,
    ToggleDetail,
    ToggleHelp,
    ToggleItem,
    ToggleTodo,
)

Intent = (
    DraftChanged
    | ImageAttached
    | ImageDetached
    | ImageRefused
    | UnfoldPaste
    | DraftRestored
    | SendDraft
    | SteerDraft
    | SendText
    | SendFailed
    | HistoryLoaded
    | HistoryPrevious
    | HistoryNext
    | SearchHistory
    | EditDraft
    | CompleteShell
    | CompletionOffered
    | MoveCompletion
    | AcceptCompletion
    | FocusQueue
    | LeaveQueue
    | MoveInQueue
    | ActOnQueued
    | Escape
    | Cancel
    | EndOfInput
    | LeaveAsked
    | Leave
    | MoveApproval
    | AnswerApproval
    | AnswerApprovalWith
    | FeedbackChanged
    | EditPlan
    | PlanEdited
    | ChoiceOffered
    | ThemeChosen
    | FilterChanged
    | MovePicker
    | ActOnRow
    | RowAnswerChanged
    | AnswerRow
    | RowReplaced
    | CycleRowFilter
    | ScrollPreview
    | PickChoice
    | CycleMode
    | ToggleDetail
    | ToggleItem
    | ToggleTodo
    | ToggleHelp
    | HelpFilterChanged
    | RepaintScreen
    | KeysLoaded
    | KeyboardKnown
    | FileOffered
    | ChordChanged
    | PickModel
    | ShowEarlier
    | OpenSearch
    | SearchChanged
    | MoveMatch
    | AcceptSearch
    | MoveBlock
    | ActOnBlock
    | LeaveTranscript
    | CopyOffered
    | PageOffered
    | MouseChosen
    | Said
    | Failed
    | TextOffered
    | CommandLasts
    | ContextShown
    | BranchRead
    | Tick
)

__all__ = [
    "AcceptCompletion",
    "AcceptSearch",
    "ActOnBlock",
    "ActOnQueued",
    "ActOnRow",
    "AnswerApproval",
    "AnswerApprovalWith",
    "AnswerRow",
    "BranchRead",
    "Cancel",
    "ChoiceOffered",
    "ChordChanged",
    "CommandLasts",
    "CompleteShell",
    "CompletionOffered",
    "ContextShown",
    "CopyOffered",
    "CycleMode",
    "CycleRowFilter",
    "DraftChanged",
    "DraftRestored",
    "EditDraft",
    "EditPlan",
    "EndOfInput",
    "Escape",
    "Failed",
    "FeedbackChanged",
    "FileOffered",
    "FilterChanged",
    "FocusQueue",
    "HelpFilterChanged",
    "HistoryLoaded",
    "HistoryNext",
    "HistoryPrevious",
    "ImageAttached",
    "ImageDetached",
    "ImageRefused",
    "Intent",
    "KeyboardKnown",
    "KeysLoaded",
    "Leave",
    "LeaveAsked",
    "LeaveQueue",
    "LeaveTranscript",
    "MouseChosen",
    "MoveApproval",
    "MoveBlock",
    "MoveCompletion",
    "MoveInQueue",
    "MoveMatch",
    "MovePicker",
    "OpenSearch",
    "PageOffered",
    "PickChoice",
    "PickModel",
    "PlanEdited",
    "RepaintScreen",
    "RowAnswerChanged",
    "RowReplaced",
    "Said",
    "ScrollPreview",
    "SearchChanged",
    "SearchHistory",
    "SendDraft",
    "SendFailed",
    "SendText",
    "ShowEarlier",
    "SteerDraft",
    "TextOffered",
    "ThemeChosen",
    "Tick",
    "ToggleDetail",
    "ToggleHelp",
    "ToggleItem",
    "ToggleTodo",
    "UnfoldPaste",
]
