"""Checks of the terminal: which one, its colours, what works in it, the clipboard, tmux, letters."""

from __future__ import annotations

from tenuto.cli.doctor.rows import Row, Surroundings
from tenuto.tui.first_paint.decide import IMMOVABLE, is_accessible
from tenuto.tui.terminal.clipboard import copy_commands, copy_sequence
from tenuto.tui.terminal.colours import has_colour, has_many_colours, has_true_colour
from tenuto.tui.terminal.emulator import (
    ask_outer,
    ask_tmux,
    is_over_ssh,
    knows_links,
    notification_form,
    recognise,
    shows_progress,
)

SMALLEST = (40, 15)
"""Columns and rows of the smallest terminal that both screens are made for."""


async def check_terminal(place: Surroundings) -> list[Row]:
    """Tell the terminal, its size, and which of the screens it gets."""
    streams, term = place.streams, place.environ.get("TERM", "")
    missing = [name for name in ("stdin", "stdout", "stderr") if not getattr(streams, name)]
    size = f", {streams.size[0]}×{streams.size[1]}" if streams.size else ""
    emulator = recognise(place.environ)
    known = f" ({emulator})" if emulator != "other" else ""
    ssh = ", over ssh" if is_over_ssh(place.environ) else ""
    found = f"TERM={term or '(unset)'}{known}{size}{ssh}"
    if len(missing) == 3:
        return [Row("terminal", f"{found}; none here: input and output are pipes or files")]
    if missing:
        names = {"stdin": "standard input", "stdout": "standard output", "stderr": "standard error"}
        which = " and ".join(names[name] for name in missing)
        return [Row("terminal", f"{found}; {which}: a pipe or a file")]
    if term in IMMOVABLE:
        do = "set TERM to what your terminal is, for example xterm-256color; until then plain lines are used"
        return [Row("terminal", found, "note", do)]
    if streams.size and (streams.size[0] < SMALLEST[0] or streams.size[1] < SMALLEST[1]):
        do = f"make the window at least {SMALLEST[0]}×{SMALLEST[1]}, or use tenuto --screen-reader"
        return [Row("terminal", found, "note", do)]
    return [Row("terminal", found, details=(f"tenuto opens {_front_end(place)}",))]


def _front_end(place: Surroundings) -> str:
    if is_accessible(place.environ):
        return "plain lines (ACCESSIBLE is set)"
    return "the inline screen (ui.inline)" if place.settings.ui.inline else "the full screen"


async def check_colours(place: Surroundings) -> list[Row]:
    """Tell how many colours there are, and who says so."""
    environ = place.environ
    if not has_colour(environ):
        why = "NO_COLOR" if environ.get("NO_COLOR") else "CLICOLOR=0" if environ.get("CLICOLOR") == "0" else "TERM"
        return [Row("colours", f"none ({why})")]
    if has_true_colour(environ):
        return [Row("colours", "all (24 bit)")]
    if has_many_colours(environ):
        do = "if the terminal has all colours: export COLORTERM=truecolor"
        return [Row("colours", "256", details=(do,))]
    do = "if the terminal has more: export TERM=xterm-256color"
    return [Row("colours", "16", "note", do) if place.streams.stdout else Row("colours", "16 by TERM")]


async def check_abilities(place: Surroundings) -> list[Row]:
    """Tell which of the terminal's own services are used."""
    outer = await ask_outer(place.environ)
    reached = outer.reachable
    form = notification_form(outer.emulator) if reached else ""
    able = {
        "links": knows_links(place.environ),
        f"notifications ({form})" if form else "notifications": bool(form),
        "progress": reached and shows_progress(outer.emulator),
    }
    yes = ", ".join(name for name, there in able.items() if there)
    no = ", ".join(name for name, there in able.items() if not there)
    bell = "" if form else "; the bell rings instead of notifications"
    return [Row("abilities", f"{yes or 'none of its own'}{f'; not known to have {no}' if no else ''}{bell}")]


async def check_clipboard(place: Surroundings) -> list[Row]:
    """Tell how copies leave the program."""
    ways = [command[0] for command in copy_commands(place.environ)]
    ways += ["the terminal (OSC 52)"] if copy_sequence("x", place.environ) else []
    if not ways:
        return [Row("clipboard", "no way to it", "note", "install wl-copy, xclip or xsel, or use another terminal")]
    return [Row("clipboard", ", ".join(ways))]


TMUX_OPTIONS = {
    "focus-events": ("set -g focus-events on", "whether you look, for notifications"),
    "allow-passthrough": ("set -g allow-passthrough on", "notifications"),
    "extended-keys": ("set -s extended-keys on", "Shift+Enter"),
    "set-clipboard": ("set -s set-clipboard on", "copies of programs"),
}
"""Option: the line that sets it, and what for."""


async def check_tmux(place: Surroundings) -> list[Row]:
    """Tell which of tmux's options stand in the way."""
    if not place.environ.get("TMUX"):
        return []
    names = ("version", "client_utf8", *TMUX_OPTIONS)
    answer = await ask_tmux("display-message", "-p", "\t".join(f"#{{{name}}}" for name in names))
    if not answer:
        return [
            Row("tmux", "TMUX is set, and tmux does not answer", "note", "start tenuto in a pane of a running tmux")
        ]
    version, utf8, *values = answer.split("\t")
    rows: list[Row] = []
    if utf8 == "0":
        rows.append(Row("tmux", "it does not know that its terminal has UTF-8", "note", "attach with tmux -u"))
    off = ("0", "off", "", "external")
    missing = [TMUX_OPTIONS[name] for name, value in zip(TMUX_OPTIONS, values, strict=False) if value in off]
    if not missing:
        return [*rows, Row("tmux", version)]
    wanted = tuple(f"{line}  # {purpose}" for line, purpose in missing)
    do = "put the lines that you want into ~/.tmux.conf"
    return [*rows, Row("tmux", f"{version}; these options are off:", "note", do, wanted)]


async def check_letters(place: Surroundings) -> list[Row]:
    """Tell what letters are written in."""
    environ = place.environ
    name = next((one for one in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(one)), "")
    locale = environ.get(name, "")
    said = f"{name}={locale}" if name else "no locale is set"
    if locale.split(".")[0] in ("", "C", "POSIX") and "." not in locale:
        return [Row("letters", f"UTF-8 ({said})")]
    if "utf" not in locale.lower():
        do = f"set {name} to a UTF-8 locale, for example C.UTF-8: tenuto writes UTF-8 to the terminal"
        return [Row("letters", said, "note", do)]
    if place.streams.encoding.lower().replace("-", "") != "utf8":
        do = "unset PYTHONIOENCODING, or set it to utf-8"
        return [Row("letters", f"standard output is {place.streams.encoding} ({said})", "note", do)]
    return [Row("letters", f"UTF-8 ({said})")]
