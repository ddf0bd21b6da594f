"""What can be known of the terminal's colours: from its variables, and by asking it. Pure, imports nothing.

The question for its background is OSC 11. DA1 comes behind it, which every terminal answers: when that answer is
there and the other is not, there will be none. Nobody waits for either.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY = "\x1b]11;?\x07\x1b[c"
HALF = 0.18
"""The luminance (WCAG) from which on dark text is easier to read than light text."""
LIGHT_COLOURS = (7, *range(9, 16))
"""The numbers of COLORFGBG that are light; 8 is a dark grey."""
_TRUE_BY_NAME = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
"""Beginnings of `TERM` of terminals that have every colour; over ssh they cannot say so in COLORTERM."""
XTERM_WITH_TRUE_COLOUR = 331
_MUTE = ("", "dumb", "unknown", "linux", "cons25")


def may_ask(environ: Mapping[str, str]) -> bool:
    """Say whether the question does no harm: GNU screen swallows the answer, a console prints the question."""
    term = environ.get("TERM", "")
    if term in _MUTE or term.startswith(("vt", "eterm")) or not has_colour(environ):
        return False
    return bool(environ.get("TMUX")) or not (term.startswith("screen") or environ.get("STY"))


def answers_at_all(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal answers what every terminal does (DA1, DSR), as far as its name tells."""
    term = environ.get("TERM", "")
    return term not in _MUTE and not term.startswith("eterm")


def has_colour(environ: Mapping[str, str]) -> bool:
    """Say whether there may be colours: NO_COLOR comes before CLICOLOR_FORCE, and that before CLICOLOR=0."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return environ.get("CLICOLOR") != "0" and not environ.get("TERM", "").startswith(("vt", "xterm-mono"))


def has_true_colour(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal has every colour, as far as it says; xterm says nothing but its version."""
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "") in ("truecolor", "24bit") or term.startswith(_TRUE_BY_NAME):
        return True
    return term.endswith("-direct") or (term.startswith("xterm") and _xterm_version(environ) >= XTERM_WITH_TRUE_COLOUR)


def _xterm_version(environ: Mapping[str, str]) -> int:
    number = environ.get("XTERM_VERSION", "").removeprefix("XTerm(").partition(")")[0]
    return int(number) if number.isdecimal() else 0


def has_many_colours(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal has more than 16 colours, as far as it says."""
    return has_true_colour(environ) or "256color" in environ.get("TERM", "")


def has_light_background(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal's variables tell of a light background (COLORFGBG); dark is the usual."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdecimal() and int(background) in LIGHT_COLOURS


def read_colour(value: str) -> str:
    """Return `#rrggbb` for what a terminal says of a colour (`rgb:1e1e/2020/2424`, `#1e2024`), empty for the rest."""
    kind, mark, digits = value.partition(":")
    if mark:
        channels = digits.split("/")[:3] if kind in ("rgb", "rgba") else []
    else:
        size, rest = divmod(len(value) - 1, 3)
        channels = [value[1 + size * place :][:size] for place in range(3)] if value[:1] == "#" and not rest else []
    try:
        scaled = [round(int(one, 16) * 255 / (16 ** len(one) - 1)) for one in channels if 0 < len(one) <= 4]
    except ValueError:
        return ""
    return "#{:02x}{:02x}{:02x}".format(*scaled) if len(scaled) == 3 else ""


def is_light(colour: str) -> bool:
    """Say whether a ground of this `#rrggbb` wants dark text."""
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > HALF
