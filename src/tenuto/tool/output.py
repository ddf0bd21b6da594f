"""What a tool returns, and how much of it the model is sent (rung 0 of DESIGN section 6, R-097, R-098)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from tenuto.protocol.message import FileUse, ResultView, ToolResultMessage
from tenuto.protocol.part import ContentPart, ImagePart, TextPart, text_of
from tenuto.text.bounding import Bounded, bound_middle, replace_surrogates, result_ceiling
from tenuto.text.estimate import estimate_text

Store = Callable[[str, str], Path]
RESULT_CHARS = 30_000
"""Characters of one result where the user has set no other limit."""
READ_CHARS = 51_200
"""The same of `read` in a large window: what a model reads it would only ask for again."""
LARGE_WINDOW = 128_000
"""Tokens of the smallest window in which `read` gives more."""
IMAGE_TOKENS = 1_200
RESULT_OVERHEAD = 4
"""Tokens of a result's frame."""
RESULTS_DIVISOR = 8
"""Part of the window that the results of a step may have over the trigger, and that they leave for the answer."""
_NOTICE_TOKENS = 80
_SMALLEST_CUT = 200
"""Characters that a cut result keeps even in a step that has no room left: its notice must be readable."""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. `parts` go to the model, `ui` to the screen, `files` to the file tracker.

    `truncated`: `parts` is not everything; `output_path` names the file that has all of it, `output_size` its bytes.
    `waited` is the seconds that the run waited for the user. `interrupted`: the run was cancelled, and this is what
    there was of it. `max_chars` is set by a tool whose results may be longer than those of others.
    """

    parts: tuple[ContentPart, ...]
    ui: tuple[ResultView, ...] = ()
    files: tuple[FileUse, ...] = ()
    is_error: bool = False
    truncated: bool = False
    output_path: str = ""
    output_size: int = 0
    waited: float = 0.0
    interrupted: bool = False
    max_chars: int | None = None

    @classmethod
    def of_text(cls, text: str) -> ToolOutput:
        """Return an output that is only text."""
        return cls(parts=(TextPart(text=text),))


def clean_text(text: str) -> str:
    """Return `text` as it can be stored and sent: no lone surrogate, no NUL (R-073)."""
    return replace_surrogates(text).replace("\0", "\ufffd")


def format_size(size: int) -> str:
    """Return a number of bytes for people."""
    if size < 10_000:
        return f"{size:,} bytes"
    return f"{size / 1000:,.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def notice_text(bounded: Bounded, size: int, path: str) -> str:
    """Return the line that stands for what was left out: how much, and how to read on."""
    lines = f"{bounded.omitted_lines:,} lines, " if bounded.omitted_lines else ""
    whole = f"The whole text ({format_size(size)}) is in {path}: read it with offset and limit, or grep it."
    return f"[… {lines}{bounded.omitted_chars:,} characters left out here. {whole}]"


def read_notice(line: str) -> int | None:
    """Return how many lines a cut text's notice stands for, 0 where it does not say; `None` for any other line."""
    if line.startswith("[… more was left out here "):
        return 0
    if not line.startswith("[… ") or " characters left out here. " not in line:
        return None
    lines, said, _rest = line[3:].partition(" lines, ")
    number = lines.replace(",", "")
    return int(number) if said and number.isdecimal() else 0


def _second_notice(size: int, path: str) -> str:
    """Return the line for a result that had been cut before: what is missing now is no longer one number."""
    return f"[… more was left out here to fit the context window. All of it ({format_size(size)}) is in {path}.]"


def bound_output(output: ToolOutput, max_chars: int, max_lines: int, name: str, store: Store) -> ToolOutput:
    """Return `output` within one result's limits; what is too long is stored under `name` first."""
    text = text_of(output.parts)
    bounded = bound_middle(text, max_chars, max_lines)
    if bounded is None:
        return output
    path, size = output.output_path, output.output_size
    if not path:
        path, size = str(store(name, text)), len(text.encode("utf-8", "replace"))
    return msgspec.structs.replace(
        output,
        parts=_with_text(output.parts, bounded.joined(notice_text(bounded, size, path))),
        truncated=True,
        output_path=path,
        output_size=size,
    )


def room_for_results(window: int, trigger: int, current: int) -> int:
    """Return the tokens that all results of a step may have together, at `current` tokens before them.

    Up to the trigger, so that a compaction does not take away at once what the model has just asked for; at most half
    of the window. Where that is little, they take up to an eighth of the window from the reserve, at most half of what
    is free: the compaction comes before the request that has them, and keeps them. Bound by the trigger they would be
    cut to nothing while all of the reserve is free.
    """
    lent = min(window // RESULTS_DIVISOR, (window - current) // 2)
    return max(0, min(window // 2, max(trigger - current, lent)))


class StepBudget(msgspec.Struct):
    """What all results of one step may have together: `room` tokens, `None` where only each one's ceiling holds.

    Results come in call order; each may have an equal share of what is left, and what it does not use goes to the
    later ones. `window` is `None` when unknown. `calibration` is the model's real tokens per estimated one, as the
    meter knows it.
    """

    window: int | None
    room: float | None
    calls: int
    calibration: float = 1.0
    _left: float = 0.0

    def __post_init__(self) -> None:
        """Begin with all of the room."""
        self._left = float("inf") if self.room is None else self.room

    def bound(self, result: ToolResultMessage, store: Store) -> ToolResultMessage:
        """Return the next result within the ceiling and its share of the step."""
        share = self._left / max(self.calls, 1) / self.calibration - RESULT_OVERHEAD
        self.calls -= 1
        cut = bound_result(result, result_ceiling(self.window), share, store)
        self._left = max(self._left - (tokens_of(cut) + RESULT_OVERHEAD) * self.calibration, 0)
        return cut


def tokens_of(result: ToolResultMessage) -> int:
    """Return the estimated tokens of a result's parts."""
    images = sum(isinstance(part, ImagePart) for part in result.parts)
    return estimate_text(text_of(result.parts)) + images * IMAGE_TOKENS


def bound_result(result: ToolResultMessage, max_chars: int, max_tokens: float, store: Store) -> ToolResultMessage:
    """Return `result` with its text cut to both limits; the whole text is stored if it is not yet."""
    text = text_of(result.parts)
    limit = _chars_within(text, max_chars, max_tokens)
    if len(text) <= limit:
        return result
    path, size = result.output_path, result.output_size
    if not path:
        path, size = str(store(result.call_id, text)), len(text.encode("utf-8", "replace"))
    # Whatever an earlier cut left as its notice stands in the middle, and the middle is what goes.
    bounded = bound_middle(text, limit)
    if bounded is None:
        return result
    notice = _second_notice(size, path) if result.truncated else notice_text(bounded, size, path)
    return msgspec.structs.replace(
        result,
        parts=_with_text(result.parts, bounded.joined(notice)),
        truncated=True,
        output_path=path,
        output_size=size,
    )


def _chars_within(text: str, max_chars: int, max_tokens: float) -> int:
    """Return how many characters of `text` fit into both limits."""
    tokens = estimate_text(text)
    if tokens <= max(max_tokens, 0):
        return max_chars
    return min(max_chars, max(int(len(text) * (max_tokens - _NOTICE_TOKENS) / tokens), _SMALLEST_CUT))


def _with_text(parts: tuple[ContentPart, ...], text: str) -> tuple[ContentPart, ...]:
    """Return `parts` with `text` in the place of all their text."""
    return (TextPart(text=text), *(part for part in parts if not isinstance(part, TextPart)))
