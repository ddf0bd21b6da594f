"""The items of the transcript: plain data that `step` changes and the render layer reads.

`version` grows with every visible change, so that (id, version, width) is a cache key. A `final` item changes no more,
except for `folded` and `unresolved`. `started` is a reading of the caller's clock while something runs and 0 once it is
final; `seconds` is what is shown. Items that stand for entries of the history are the same live and after a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import msgspec
from msgspec import Struct, field

from tenuto.protocol.entry import Level, Origin
from tenuto.protocol.event import ChildProgressEvent
from tenuto.protocol.message import AgentView, CompactionEntry, ToolResultMessage
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import ImagePart, WebSearch, WebSource
from tenuto.protocol.usage import ContextReport

ToolState = Literal["writing", "ready", "waiting", "running", "done", "failed", "interrupted", "denied"]
"""Of a call: `ready` is written and has its turn to come, `waiting` needs the user's answer."""
LIVE_OUTPUT_CHARACTERS = 16_000
"""How much of a running command's output is kept for the screen; the result brings the rest."""


class BaseItem(Struct, kw_only=True):
    """What all items have."""

    id: int = 0
    version: int = 0
    final: bool = False
    folded: bool = True


class UserItem(BaseItem, kw_only=True):
    """A user message. `seq` is 0 while it is only an echo of what was typed; such an item is not final."""

    text: str = ""
    images: tuple[ImagePart, ...] = ()
    origin: Origin = "typed"
    seq: int = 0


class AssistantItem(BaseItem, kw_only=True):
    """Text of an answer, in Markdown; it only grows until it is final. `seq` is 0 while it streams.

    `pausing` says that it has not grown for a moment: all of it shows then, also what waits for more. A long answer is
    several of them, one behind the other; `piece` is the number of this one, from 0.
    """

    text: str = ""
    seq: int = 0
    interrupted: bool = False
    pausing: bool = False
    piece: int = 0


class ThinkingItem(BaseItem, kw_only=True):
    """Readable reasoning; `seconds` is how long it took (0: not known)."""

    text: str = ""
    started: float = 0.0
    seconds: float = 0.0


class SearchItem(BaseItem, kw_only=True):
    """A look at the web by the provider's own tool; unfolded, with the pages that it found."""

    search: WebSearch


class SourcesItem(BaseItem, kw_only=True):
    """The pages that the answer above cites."""

    sources: tuple[WebSource, ...]


class ToolItem(BaseItem, kw_only=True):
    """A tool call and its result.

    `call_id` is empty and `characters` counts the arguments while the model is "writing" them. `output` is the tail
    of the live output, empty once there is a result. `summary` is one line (a path, a command). `unresolved` says of a
    failed call that its turn ended and nothing in it went well afterwards.
    """

    call_id: str = ""
    name: str = ""
    arguments: str = ""
    summary: str = ""
    state: ToolState = "writing"
    characters: int = 0
    output: str = ""
    result: ToolResultMessage | None = None
    unresolved: bool = False
    progress: ChildProgressEvent | None = None
    """How far the sub-agent is that the call runs."""
    started: float = 0.0
    seconds: float = 0.0

    @property
    def child(self) -> str:
        """The session of the sub-agent that the call runs or ran; empty for none."""
        views = self.result.ui if self.result is not None else ()
        ran = next((view.session for view in views if isinstance(view, AgentView)), "")
        return ran or (self.progress.child if self.progress is not None else "")

    @property
    def waits_for_command(self) -> bool:
        """Whether the running call waits for a command, its own or one of the sub-agent that it runs."""
        in_command = self.progress is not None and self.progress.in_command
        return self.state == "running" and (self.name == "bash" or in_command)


class ShellItem(BaseItem, kw_only=True):
    """A `!command` of the user; `output` is a tail while it runs, then what the history has of it."""

    command: str = ""
    output: str = ""
    exit_code: int | None = None
    excluded: bool = False
    interrupted: bool = False
    running: bool = False
    truncated: bool = False
    output_path: str = ""
    started: float = 0.0
    seconds: float = 0.0


class NoticeItem(BaseItem, kw_only=True):
    """Something that the user is told; `kind` is "command" for the answer of a slash command."""

    text: str = ""
    level: Level = "info"
    kind: str = ""


WELCOME = "welcome"
"""The kind of the notice on a new session's first screen."""


def is_welcome(item: BaseItem) -> bool:
    """Say whether an item goes with the first prompt."""
    return isinstance(item, NoticeItem) and item.kind == WELCOME


class CompactionItem(BaseItem, kw_only=True):
    """A compaction: running with its stage, then what was written, or why nothing was.

    `proposed` says that `entry` waits for the user's word, and is not written.
    """

    reason: CompactionReason = "manual"
    stage: str = ""
    summary_tokens: int = 0
    entry: CompactionEntry | None = None
    error: str = ""
    aborted: bool = False
    needless: bool = False
    running: bool = False
    proposed: bool = False
    undone_by: int = 0
    """The seq of the undo that is in effect; 0: none is."""
    started: float = 0.0
    seconds: float = 0.0


class ContextItem(BaseItem, kw_only=True):
    """What filled the window when it was asked for."""

    report: ContextReport


Item = (
    UserItem
    | AssistantItem
    | ThinkingItem
    | SearchItem
    | SourcesItem
    | ToolItem
    | ShellItem
    | NoticeItem
    | CompactionItem
    | ContextItem
)
TimedItem = ThinkingItem | ToolItem | ShellItem | CompactionItem


class Transcript(Struct):
    """The items in order. Insertion and removal at the end, and look-up by id, cost the same at any length."""

    items: dict[int, Item] = field(default_factory=dict[int, Item])
    next_id: int = 1

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def get(self, item_id: int) -> Item | None:
        """Return the item, `None` when it is not (or no longer) there."""
        return self.items.get(item_id)

    def ordered(self) -> list[Item]:
        """Return all items in order: a new list."""
        return list(self.items.values())


def whole_item(items: Sequence[Item], item: Item) -> Item:
    """Return an item of these; of an answer in pieces, whichever is asked for, a copy with all of its text."""
    if not isinstance(item, AssistantItem):
        return item
    answers = [each for each in items if isinstance(each, AssistantItem)]
    place = next((place for place, each in enumerate(answers) if each is item), 0)
    behind = takewhile(lambda each: each.piece, answers[place + 1 :])
    pieces = [*answers[place - item.piece : place], item, *behind]
    if len(pieces) == 1:
        return item
    text = "".join([each.text for each in pieces])
    return msgspec.structs.replace(item, text=text, interrupted=pieces[-1].interrupted, piece=0)


def append_text(item: AssistantItem | ThinkingItem, delta: str) -> None:
    """Add `delta` to the item's text, at the cost of the delta and not of the whole text."""
    # A string with a single owner grows in place; held by the item during the addition it would be copied.
    text = item.text
    item.text = ""
    text += delta
    item.text = text


def append_output(item: ToolItem | ShellItem, text: str) -> None:
    """Add live output and keep the last `LIVE_OUTPUT_CHARACTERS`, from a line's beginning where there is one."""
    output = item.output + text
    if len(output) > LIVE_OUTPUT_CHARACTERS:
        output = output[-LIVE_OUTPUT_CHARACTERS:]
        line_end = output.find("\n", 0, LIVE_OUTPUT_CHARACTERS // 4)
        output = output[line_end + 1 :]
    item.output = output


GapEnd = Literal["newest", "oldest"]
"""Which entries of a gap: those right before what is below it, or right behind what is above it."""


class Gap(msgspec.Struct):
    """Entries of the session with a seq over `after` and under `before`; `entries` of them are on the path.

    `asked` says that a part of it is on its way.
    """

    after: int
    before: int
    entries: int
    asked: bool = False

    @property
    def text(self) -> str:
        """What its item says."""
        if not self.after:
            return f"{self.entries:,} earlier entries: scroll up, or /recall what was said in them"
        return f"{self.entries:,} entries lie between: they come when you scroll on"


class Part(msgspec.Struct, frozen=True):
    """Entries that were loaded from the log: `entries` of them, from the seq `first` to the seq `last`.

    `ids` are those that their items got, or could have got.
    """

    first: int
    last: int
    entries: int
    ids: range


# --- what can be done with one ---

LONG_LINES, LONG_CHARACTERS = 20, 1_000
"""A message that is shorter in both is never folded."""
BlockAction = Literal["fold", "copy", "edit", "rewind", "undo", "watch", "transcript", "stop", "open"]


def block_actions(item: Item | None) -> tuple[BlockAction, ...]:
    """Return what can be done with a block, in the order in which it is offered."""
    if item is None:
        return ()
    actions: list[BlockAction] = ["fold"] if _folds(item) else []
    actions.append("copy")
    if isinstance(item, UserItem):
        actions.append("edit")
        if item.seq:
            actions.append("rewind")
    if isinstance(item, CompactionItem) and item.entry is not None and not (item.proposed or item.undone_by):
        actions.append("undo")
    if isinstance(item, ToolItem) and item.child:
        actions.extend(("watch", "transcript"))
        if not item.final:
            actions.append("stop")
    actions.append("open")
    return tuple(actions)


def meant_action(item: Item | None, action: BlockAction | Literal["enter"]) -> BlockAction:
    """Return what an action is on a block: "enter" reads along with a sub-agent, and folds all others."""
    if action != "enter":
        return action
    return "watch" if isinstance(item, ToolItem) and item.child else "fold"


def _folds(item: Item) -> bool:
    """Say whether folding an item can make a difference."""
    if isinstance(item, UserItem):
        return item.text.count("\n") >= LONG_LINES or len(item.text) > LONG_CHARACTERS
    if isinstance(item, SearchItem):
        return bool(item.search.sources)
    return isinstance(item, ThinkingItem | ToolItem | ShellItem | CompactionItem)
