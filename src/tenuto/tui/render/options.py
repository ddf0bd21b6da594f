"""What a user chose about how the screen looks: details, glyphs, and how much moves (`ui.reduce_motion`)."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenuto.config.settings import UiSettings

Detail = Literal["folded", "expanded"]
DiffLayout = Literal["auto", "unified", "split"]
"""One column, or old and new side by side; "auto" takes two where there is room for both."""
GUTTER = 2
"""Cells at the left of every item that copying leaves out; the item's mark stands in them."""
MEASURE = 100
"""The longest line of text that is comfortable to read, in cells; code, tables and diffs may be wider."""
MIN_WIDTH = 12
"""Narrower screens are drawn as if they were this wide: nothing can be read there, and nothing may loop there."""


class RenderOptions(Struct, frozen=True):
    """`now` is the caller's clock in seconds, for what runs; `ascii` draws with 7-bit glyphs only.

    `spoken` is for who has it read aloud: words instead of rules, columns and pictures. `expand_key` is the key that
    shows what is folded away, as people read it; empty where there is none.
    """

    detail: Detail = "folded"
    now: float = 0.0
    show_thinking: bool = True
    ascii: bool = False
    spoken: bool = False
    diff: DiffLayout = "auto"
    expand_key: str = ""


class Glyphs(Struct, frozen=True):
    """Every character that the render layer draws by itself."""

    bar: str = "▌"
    bullets: tuple[str, ...] = ("•", "◦", "▪")
    unchecked: str = "☐"
    checked: str = "☑"
    active: str = "▶"
    cancelled: str = "☒"
    rule: str = "─"
    column: str = "│"
    cross: str = "┼"
    dot: str = "●"
    ring: str = "○"
    failed: str = "✗"
    stopped: str = "■"
    denied: str = "⊘"
    question: str = "?"
    thinking: str = "✻"
    notice: str = "ℹ"
    warning: str = "⚠"
    compaction: str = "◆"
    arrow: str = "→"
    left_arrow: str = "←"
    continued: str = "↳"
    times: str = "×"
    minus: str = "−"
    ellipsis: str = "…"
    middle: str = "·"


UNICODE = Glyphs()
ASCII = Glyphs(
    bar="|",
    bullets=("*", "-", "+"),
    unchecked="[ ]",
    checked="[x]",
    active="[>]",
    cancelled="[-]",
    rule="-",
    column="|",
    cross="+",
    dot="*",
    ring="o",
    failed="x",
    stopped="#",
    denied="!",
    thinking="~",
    notice="i",
    warning="!",
    compaction="=",
    arrow="->",
    left_arrow="<-",
    continued=">",
    times="x",
    minus="-",
    ellipsis="...",
    middle="-",
)
SPOKEN = replace(ASCII, rule="", column="", cross="", continued="")
DEFAULT = RenderOptions()


def more_text(count: str, width: int, glyphs: Glyphs, expand_key: str) -> str:
    """Return what stands for what is folded away: how much of it, and where `width` cells allow it the key for it."""
    text = f"{glyphs.ellipsis} +{count}"
    with_key = f"{text} {glyphs.middle} {expand_key} expand"
    return with_key if expand_key and len(with_key) <= width else text


def glyphs_for(options: RenderOptions) -> Glyphs:
    """Return the glyphs that the options ask for."""
    return SPOKEN if options.spoken else ASCII if options.ascii else UNICODE


def text_width(width: int) -> int:
    """Return the cells that running text may take on a screen of `width` cells, the gutter taken off."""
    return min(max(width, MIN_WIDTH) - GUTTER, MEASURE)


def wide_width(width: int) -> int:
    """Return the cells that code, tables and diffs may take on a screen of `width` cells, the gutter taken off."""
    return max(width, MIN_WIDTH) - GUTTER


FRAME_SECONDS: Final = 0.1


class Motion(NamedTuple):
    """`spins`: the spinner moves. Seconds: `tick` between looks at the clock, `flush` between paints of a stream.

    What counts seconds changes every `step` of them.
    """

    spins: bool
    tick: float
    flush: float
    step: int

    def frame(self, now: float) -> int | None:
        """Return which picture of the spinner shows, `None` for the one that stands still."""
        return int(now / FRAME_SECONDS) if self.spins else None

    def shown_time(self, now: float) -> float:
        """Return the time as it is shown: it stands still between steps."""
        return now if self.step == 1 else now - now % self.step


MOTIONS: Final = {
    "off": Motion(spins=True, tick=FRAME_SECONDS, flush=1 / 15, step=1),
    "on": Motion(spins=False, tick=FRAME_SECONDS, flush=1 / 15, step=1),
    "strict": Motion(spins=False, tick=0.25, flush=1 / 3, step=5),
}


def motion_of(ui: UiSettings) -> Motion:
    """Return what the user wants; `true` and `false` are `on` and `off`."""
    wanted = ui.reduce_motion
    return MOTIONS[wanted if isinstance(wanted, str) else "on" if wanted else "off"]
