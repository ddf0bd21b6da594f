"""What `/theme` does on a screen: offers the themes, changes to one, and keeps the choice in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from tenuto.command.outcome import Choice, Choose, Say
from tenuto.config.settings import load_settings
from tenuto.tui.machine.intents import ThemeChosen
from tenuto.tui.theme.themes import DESCRIPTIONS, load_theme, own_themes

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
    from tenuto.config.settings import SettingNotKept, keep_setting

    try:
        file = keep_setting(home, "ui", "theme", name)
    except SettingNotKept as error:
        return [f"The theme holds until you leave: {error}"]
    settings, _ = load_settings(home, cwd, environ)
    if settings.ui.theme == name:
        return []
    other = "TENUTO_UI__THEME" if environ.get("TENUTO_UI__THEME") else "the project's settings"
    return [f"The theme is kept in {file}, but {other} will ask for “{settings.ui.theme}” at the next start"]
