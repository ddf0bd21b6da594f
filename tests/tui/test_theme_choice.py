"""/theme on both screens: every theme shows while its row is selected, Esc takes it back, Enter keeps it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.command.outcome import ChangeTheme, Choice, Choose, Say
from tenuto.command.registry import COMMANDS
from tenuto.config.settings import load_settings
from tenuto.frontend.outcomes import describe_outcome
from tenuto.tui.effects import ChoicePreviewed, Effect, RunCommand, ThemeChanged
from tenuto.tui.machine.intents import Escape, FilterChanged, MovePicker, PickChoice, ThemeChosen
from tenuto.tui.machine.state import UiState
from tenuto.tui.machine.step import step
from tenuto.tui.theme.theme_choice import answer_theme, offer_themes
from tenuto.tui.theme.themes import DESCRIPTIONS
from tests.tui.full.support import running_app as running_full
from tests.tui.inline.support import running_app as running_inline

ACCENT = {"dark": "229;166;99", "light": "154;74;0"}


def previews(effects: list[Effect]) -> list[str]:
    return [effect.value for effect in effects if isinstance(effect, ChoicePreviewed)]


def offered(live: bool = True) -> UiState:
    state = UiState()
    rows = tuple(Choice(name, name, present=name == "b") for name in "abc")
    step(state, Choose("Letters", "letter", rows, live=live), 0.0, 80)
    return state


# --- the machine ---


def test_a_live_picker_shows_what_the_selected_row_would_do_and_takes_it_back() -> None:
    state = offered()
    assert previews(step(state, MovePicker(1), 0.0, 80)[1]) == ["c"]
    assert previews(step(state, MovePicker(-2), 0.0, 80)[1]) == ["a"]
    assert previews(step(state, FilterChanged("b"), 0.0, 80)[1]) == ["b"]
    assert previews(step(state, FilterChanged("nothing like it"), 0.0, 80)[1]) == []
    assert previews(step(state, Escape(), 0.0, 80)[1]) == [""]
    assert state.picker is None


def test_what_is_taken_goes_on_showing() -> None:
    state = offered()
    step(state, MovePicker(1), 0.0, 80)
    effects = step(state, PickChoice(), 0.0, 80)[1]
    assert previews(effects) == []
    assert RunCommand("/letter c") in effects


def test_other_pickers_show_nothing() -> None:
    state = offered(live=False)
    assert previews(step(state, MovePicker(1), 0.0, 80)[1]) == []
    assert previews(step(state, Escape(), 0.0, 80)[1]) == []


def test_a_chosen_theme_is_known_and_shown() -> None:
    state = UiState()
    assert ThemeChanged("light") in step(state, ThemeChosen("light"), 0.0, 80)[1]
    assert state.theme == "light"


# --- the answer ---


def test_all_themes_are_offered_with_the_present_one_and_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "mine.toml").write_text("")
    offer = offer_themes("light", tmp_path)
    assert [choice.value for choice in offer.choices] == [*DESCRIPTIONS, "mine"]
    assert [choice.value for choice in offer.choices if choice.present] == ["light"]
    assert offer.live


def test_a_name_is_shown_and_kept(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[ui] # mine\ntheme = "dark"\n')
    assert answer_theme("light", "dark", tmp_path, tmp_path, {}) == [ThemeChosen("light")]
    assert (tmp_path / "settings.toml").read_text() == '[ui] # mine\ntheme = "light"\n'


def test_a_name_that_nobody_knows_changes_nothing_and_is_answered(tmp_path: Path) -> None:
    (answer,) = answer_theme("lihgt", "dark", tmp_path, tmp_path, {})
    assert isinstance(answer, Say)
    assert "“lihgt”" in answer.text
    assert "contrast-light" in answer.text
    assert not (tmp_path / "settings.toml").exists()


def test_what_is_wrong_with_an_own_theme_is_said(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "mine.toml").write_text('[colours]\nred = "pink"\nquiet = "#222222"')
    chosen, *warnings = answer_theme("mine", "dark", tmp_path, tmp_path, {})
    assert chosen == ThemeChosen("mine")
    texts = [warning.text for warning in warnings if isinstance(warning, Say) and warning.level == "warning"]
    assert len(texts) == len(warnings) == 2
    assert "[colours] red" in texts[0]
    assert "hard to read" in texts[1]


def test_that_another_setting_wins_at_the_next_start_is_said(tmp_path: Path) -> None:
    environ = {"TENUTO_UI__THEME": "ansi"}
    chosen, warning = answer_theme("light", "dark", tmp_path, tmp_path, environ)
    assert chosen == ThemeChosen("light")
    assert isinstance(warning, Say)
    assert "TENUTO_UI__THEME will ask for “ansi”" in warning.text


def test_a_choice_that_cannot_be_kept_holds_until_the_end(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[ui")
    chosen, warning = answer_theme("light", "dark", tmp_path, tmp_path, {})
    assert chosen == ThemeChosen("light")
    assert isinstance(warning, Say)
    assert "holds until you leave" in warning.text
    assert (tmp_path / "settings.toml").read_text() == "[ui"


def test_completion_knows_the_themes_and_print_mode_has_none() -> None:
    (command,) = [command for command in COMMANDS if command.name == "theme"]
    assert command.values == tuple(DESCRIPTIONS)
    assert "screen" in describe_outcome(ChangeTheme(""))


# --- the screens ---


async def test_the_full_screen_shows_each_theme_and_keeps_the_one_that_is_taken() -> None:
    async with running_full() as screen:
        app, home = screen.app, screen.runtime.home
        screen.runtime.outcomes = [ChangeTheme("")]
        await app.runner.submit_user_input("/theme")
        await screen.settle()
        assert "high contrast" in screen.text()

        def glyph_colour() -> str:
            color = next(iter(app.chrome.glyph.render_line(0))).style.color
            return color.name if color is not None else ""

        before = glyph_colour()
        await screen.pilot.press("down")
        await screen.settle()
        assert app.palette.theme.name == "light"
        assert glyph_colour() != before
        await screen.pilot.press("escape")
        await screen.settle()
        assert app.palette.theme.name == "dark"
        assert glyph_colour() == before
        screen.runtime.outcomes = [ChangeTheme("contrast-dark")]
        await app.runner.submit_user_input("/theme contrast-dark")
        await screen.settle()
        assert app.palette.theme.name == "contrast-dark"
        assert load_settings(home, None, {})[0].ui.theme == "contrast-dark"


async def test_every_row_of_the_full_screen_changes_its_colours() -> None:
    async with running_full() as screen:
        screen.app.themes.show("light")
        await screen.settle()
        colours = {
            segment.style.color.name
            for strip in screen.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.color is not None
        }
        dark = {style.foreground for style in _theme("dark").styles.values()}
        light = {style.foreground for style in _theme("light").styles.values()}
        assert colours & light
        assert not colours & (dark - light)


def _theme(name: str):
    from tenuto.tui.render.theme import find_theme

    return find_theme(name)


async def test_the_inline_screen_shows_each_theme_and_takes_it_back() -> None:
    async with running_inline() as session:
        session.runtime.outcomes = [ChangeTheme("")]
        await session.app.runner.submit_user_input("/theme")
        await session.shows("high contrast")
        session.terminal.frames.clear()
        session.type("\x1b[B")
        await session.until(lambda: ACCENT["light"] in session.terminal.raw, "the light accent")
        session.terminal.frames.clear()
        session.type("\x1b")
        await session.until(lambda: ACCENT["dark"] in session.terminal.raw, "the dark accent")
        assert session.app.themes.theme.name == "dark"


@pytest.mark.parametrize("running", [running_full, running_inline])
async def test_what_is_wrong_with_the_theme_is_told_at_the_start(running) -> None:
    async with running(theme="nowhere") as session:
        await asyncio.sleep(0.1)
        assert "There is no theme “nowhere”" in session.text()
        assert session.app.themes.theme.name in ("dark", "ansi")


async def test_own_themes_are_completed_behind_the_command() -> None:
    async with running_full() as screen:
        folder = screen.runtime.home / "themes"
        folder.mkdir(parents=True)
        (folder / "midnight.toml").write_text('base = "dark"\n')
        screen.runtime.arguments = (Choice("dark", "dark"),)
        await screen.burst([*"/theme mi"])
        await asyncio.sleep(0.2)
        await screen.burst([])
        assert any("midnight" in row and "your own" in row for row in screen.rows())
        await screen.burst(["tab"])
        assert screen.app.composer.text == "/theme midnight"
