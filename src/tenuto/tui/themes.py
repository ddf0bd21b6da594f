"""Which theme shows: what the person wants, what the terminal says of itself, and the person's own theme files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tenuto.tui.render.theme import THEME_NAMES, Theme, find_theme

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "auto": "dark or light, by the background of the terminal",
    "dark": "for dark backgrounds",
    "light": "for light backgrounds",
    "ansi": "the terminal's own 16 colours",
    "contrast": "high contrast, by the background of the terminal",
    "contrast-dark": "high contrast, for dark backgrounds",
    "contrast-light": "high contrast, for light backgrounds",
}
"""Every name that can be set without a file."""
AUTOMATIC: Final = {"auto": ("dark", "light"), "contrast": ("contrast-dark", "contrast-light")}
"""Names that go by the background: what they are on a dark one, and on a light one."""
FOLDER: Final = "themes"
MAX_BYTES: Final = 100_000
LIGHT_COLOURS: Final = (7, *range(9, 16))
"""The numbers of COLORFGBG that are light; 8 is a dark grey."""


class Found(NamedTuple):
    """A theme, and what is to be said about its file: lines that begin with the file's path."""

    theme: Theme
    problems: tuple[str, ...] = ()


class ThemeChooser:
    """Knows the theme that shows. `wanted` is the name from the settings, `home` Tenuto's own directory.

    `problems` are lines about the wanted theme's file.
    """

    def __init__(self, wanted: str, environ: Mapping[str, str], home: Path) -> None:
        self.wanted = wanted
        self._environ = environ
        self._home = home
        self._light = has_light_background(environ)
        self._shown = wanted
        self._repaint: Callable[[Theme], None] = lambda _theme: None
        self.theme, self.problems = self._find(wanted)

    def watch(self, repaint: Callable[[Theme], None]) -> None:
        """Have `repaint` called with every other theme that is to be shown."""
        self._repaint = repaint

    @property
    def wants_background(self) -> bool:
        """Whether the theme that shows goes by the terminal's background."""
        return self._shown in AUTOMATIC

    def show(self, name: str) -> None:
        """Show a theme from now on. A file that is bad gives what is good of it."""
        self._shown = name
        self._change()

    def hear(self, light: bool) -> None:
        """The terminal said what its background is like."""
        if light != self._light:
            self._light = light
            self._change()

    def _change(self) -> None:
        theme = self._find(self._shown).theme
        if theme != self.theme:
            self.theme = theme
            self._repaint(theme)

    def _find(self, name: str) -> Found:
        found = find_any(name, self._home, self._environ, light=self._light)
        return found if has_colour(self._environ) else Found(found.theme.without_colour(), found.problems)


def find_any(name: str, home: Path, environ: Mapping[str, str], *, light: bool) -> Found:
    """Return the theme of that name: one of ours, or the person's own; for want of it what `auto` gives."""
    if name in THEME_NAMES:
        return Found(find_theme(name))
    if name in AUTOMATIC:
        return Found(find_theme(AUTOMATIC[name][light] if has_many_colours(environ) or name != "auto" else "ansi"))
    theme, problems = load_theme(home, name)
    if theme is not None:
        return Found(theme, problems)
    return Found(find_any("auto", home, environ, light=light).theme, problems)


def load_theme(home: Path, name: str) -> tuple[Theme | None, tuple[str, ...]]:
    """Read `themes/NAME.toml` of Tenuto's home. `None`: there is no such theme; the lines say why."""
    from tenuto.tui.render.theme_file import describe_weakness, read_theme

    file = home / FOLDER / f"{name}.toml"
    if name not in own_themes(home):
        names = ", ".join((*DESCRIPTIONS, *own_themes(home)))
        return None, (f"There is no theme “{name}”; there are {names}, and the files that you put into {file.parent}",)
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, (f"{file}: {error}; the theme is not used",)
    theme, problems = read_theme(name, text)
    if theme is None:
        return None, tuple(f"{file}: {problem}; the theme is not used" for problem in problems)
    weakness = describe_weakness(theme)
    lines = [f"{file}: {problem}; this is left out" for problem in problems]
    return theme, (*lines, *([f"{file}: {weakness}"] if weakness else []))


def own_themes(home: Path) -> tuple[str, ...]:
    """Return the names of the person's own themes. A file with the name of one of ours counts for nothing."""
    try:
        files = sorted((home / FOLDER).iterdir())
    except OSError:
        return ()
    return tuple(file.stem for file in files if file.suffix == ".toml" and file.stem not in DESCRIPTIONS)


def has_light_background(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal's variables tell of a light background (COLORFGBG); dark is the usual."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdecimal() and int(background) in LIGHT_COLOURS


def has_many_colours(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal has more than 16 colours, as far as it says."""
    return environ.get("COLORTERM", "") in ("truecolor", "24bit") or "256color" in environ.get("TERM", "")


def has_colour(environ: Mapping[str, str]) -> bool:
    """Say whether there may be colours: NO_COLOR comes before CLICOLOR_FORCE, and that before CLICOLOR=0."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return environ.get("CLICOLOR") != "0" and not environ.get("TERM", "").startswith(("vt", "xterm-mono"))
