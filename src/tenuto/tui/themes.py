"""Which theme shows: what the user wants, what the terminal says of itself, the user's own files; and `/theme`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from tenuto.command.outcome import Choice, Choose, Say
from tenuto.config.sources import load_settings
from tenuto.tui.render.theme import THEME_NAMES, Theme, find_theme
from tenuto.tui.state.intents import ThemeChosen
from tenuto.tui.terminal.colours import QUERY, has_colour, has_light_background, has_many_colours, is_light, may_ask

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
        self._write: Callable[[str], None] = lambda _sequence: None
        self._asked = True
        self.theme, self.problems = self._find(wanted)

    def watch(self, repaint: Callable[[Theme], None]) -> None:
        """Have `repaint` called with every other theme that is to be shown."""
        self._repaint = repaint

    def begin(self, write: Callable[[str], None], *, asked: bool = False) -> None:
        """Ask the terminal for its background, if that is of use: now, or when it will be. Nobody waits for it.

        `write` takes control sequences; `asked`: somebody else has done it.
        """
        self._write = write
        self._asked = asked or not may_ask(self._environ)
        self._ask_if_needed()

    def show(self, name: str) -> None:
        """Show a theme from now on. A file that is bad gives what is good of it."""
        self._shown = name
        self._ask_if_needed()
        self._change()

    def choose(self, name: str) -> None:
        """Show a theme that the user has chosen."""
        self.wanted = name
        self.show(name)

    def preview(self, name: str) -> None:
        """Show a theme while the user looks at it; an empty name ends that."""
        self.show(name or self.wanted)

    def set_background_colour(self, background: str) -> None:
        """Take the background that the terminal answered (`#rrggbb`); empty: it did not answer."""
        if background:
            self.set_background(is_light(background))

    def set_background(self, light: bool) -> None:
        """Choose again for a background that is light, or dark."""
        if light != self._light:
            self._light = light
            self._change()

    def _ask_if_needed(self) -> None:
        if self._shown in AUTOMATIC and not self._asked:
            self._asked = True
            self._write(QUERY)

    def _change(self) -> None:
        theme = self._find(self._shown).theme
        if theme != self.theme:
            self.theme = theme
            self._repaint(theme)

    def _find(self, name: str) -> Found:
        found = find_any(name, self._home, self._environ, light=self._light)
        return found if has_colour(self._environ) else Found(found.theme.without_colour(), found.problems)


def find_any(name: str, home: Path, environ: Mapping[str, str], *, light: bool) -> Found:
    """Return the theme of that name: one of ours, or the user's own; for want of it what `auto` gives."""
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
        from tenuto.text.matching import did_you_mean

        names = (*DESCRIPTIONS, *own_themes(home))
        known = f"there are {', '.join(names)}, and the files that you put into {file.parent}"
        return None, (f"There is no theme “{name}”: {known}{did_you_mean(name, names)}",)
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
    """Return the names of the user's own themes. A file with the name of one of ours counts for nothing."""
    try:
        files = sorted((home / FOLDER).iterdir())
    except OSError:
        return ()
    return tuple(file.stem for file in files if file.suffix == ".toml" and file.stem not in DESCRIPTIONS)


# --- what `/theme` does ---


Answer = Choose | Say | ThemeChosen


def answer_theme(name: str, present: str, home: Path, cwd: Path, environ: Mapping[str, str]) -> list[Answer]:
    """Return what `/theme NAME` comes to; without a name, all themes to choose from. Reads and writes files."""
    if not name:
        return [offer_themes(present, home)]
    problems: tuple[str, ...] = ()
    if name not in DESCRIPTIONS:
        theme, problems = load_theme(home, name)
        if theme is None:
            return [Say(problem, "warning") for problem in problems]
    warnings = [*problems, *keep_theme(name, home, cwd, environ)]
    return [ThemeChosen(name), *(Say(warning, "warning") for warning in warnings)]


def offer_themes(present: str, home: Path) -> Choose:
    """Return the picker; each theme shows while its row is selected."""
    rows = (*(Choice(name, name, text) for name, text in DESCRIPTIONS.items()), *own_choices(home))
    marked = tuple(replace(row, present=row.value == present) for row in rows)
    return Choose(f"Theme (now {present})", "theme", marked, live=True)


def own_choices(home: Path) -> tuple[Choice, ...]:
    """Return the user's own themes, those in `home`. Reads its directory."""
    return tuple(Choice(name, name, "your own") for name in own_themes(home))


def keep_theme(name: str, home: Path, cwd: Path, environ: Mapping[str, str]) -> list[str]:
    """Put the name into the settings; return what the user has to know if it will not hold at the next start."""
    from tenuto.config.settings_writer import SettingNotKept, keep_setting

    try:
        file = keep_setting(home, "ui", "theme", name)
    except SettingNotKept as error:
        return [f"The theme holds until you leave: {error}"]
    settings, _ = load_settings(home, cwd, environ)
    if settings.ui.theme == name:
        return []
    other = "TENUTO_UI__THEME" if environ.get("TENUTO_UI__THEME") else "the project's settings"
    return [f"The theme is kept in {file}, but {other} will ask for “{settings.ui.theme}” at the next start"]
