"""Which theme shows, the user's own theme files, and `/theme` on both screens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.api.words import describe_outcome
from tenuto.command.outcome import ChangeTheme, Choice, Choose, Say
from tenuto.command.registry import COMMANDS
from tenuto.config.sources import load_settings
from tenuto.tui.machine.step import step
from tenuto.tui.render.theme import PALETTES, STYLES, THEME_NAMES, Theme
from tenuto.tui.render.theme_file import read_theme
from tenuto.tui.state.effects import ChoicePreviewed, Effect, RunCommand, ThemeChanged
from tenuto.tui.state.intents import Escape, FilterChanged, MovePicker, PickChoice, ThemeChosen
from tenuto.tui.state.state import UiState
from tenuto.tui.terminal.colours import has_colour
from tenuto.tui.themes import AUTOMATIC, DESCRIPTIONS, ThemeChooser, answer_theme, offer_themes, own_themes
from tests.tui.full.support import running_app as running_full
from tests.tui.inline.support import running_app as running_inline

MANY = {"TERM": "xterm-256color"}


def write_theme(home: Path, name: str, text: str) -> Path:
    file = home / "themes" / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("auto", MANY, "dark"),
        ("auto", {**MANY, "COLORFGBG": "0;15"}, "light"),
        ("auto", {**MANY, "COLORFGBG": "0;default;15"}, "light"),
        ("auto", {**MANY, "COLORFGBG": "15;0"}, "dark"),
        ("auto", {**MANY, "COLORFGBG": "0;default"}, "dark"),
        ("auto", {"TERM": "xterm", "COLORTERM": "truecolor"}, "dark"),
        ("auto", {"TERM": "xterm"}, "ansi"),
        ("auto", {"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}, "dark"),
        ("auto", {"TERM": "xterm", "XTERM_VERSION": "XTerm(297)"}, "ansi"),
        ("auto", {"TERM": "xterm-kitty"}, "dark"),
        ("auto", {"TERM": "alacritty"}, "dark"),
        ("auto", {"TERM": "foot"}, "dark"),
        ("auto", {"TERM": "linux"}, "ansi"),
        ("contrast", {"TERM": "linux"}, "contrast-dark"),
        ("contrast", {**MANY, "COLORFGBG": "0;15"}, "contrast-light"),
        ("light", {**MANY, "COLORFGBG": "15;0"}, "light"),
        ("light", {**MANY, "NO_COLOR": "1"}, "light-mono"),
    ],
)
def test_the_theme_follows_the_terminal_and_what_is_set_wins(
    tmp_path: Path, name: str, environ: dict[str, str], expected: str
) -> None:
    assert ThemeChooser(name, environ, tmp_path).theme.name == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "0"}, False),
        ({"TERM": "vt220"}, False),
        ({"TERM": "vt220", "CLICOLOR_FORCE": "1"}, True),
    ],
)
def test_whether_there_are_colours(environ: dict[str, str], expected: bool) -> None:
    assert has_colour(environ) == expected


def test_the_background_changes_what_goes_by_it_and_nothing_else(tmp_path: Path) -> None:
    for name, (dark, light) in AUTOMATIC.items():
        shown: list[str] = []
        chooser = ThemeChooser(name, MANY, tmp_path)
        chooser.watch(lambda theme, shown=shown: shown.append(theme.name))
        for is_light in (False, True, True, False):
            chooser.set_background(is_light)
        assert shown == [light, dark]
    for name in THEME_NAMES:
        chooser = ThemeChooser(name, MANY, tmp_path)
        chooser.watch(lambda theme: pytest.fail(theme.name))
        chooser.set_background(True)
        assert chooser.theme.name == name


def test_a_background_that_was_heard_of_counts_for_what_is_chosen_later(tmp_path: Path) -> None:
    chooser = ThemeChooser("dark", MANY, tmp_path)
    chooser.set_background(True)
    chooser.show("auto")
    assert chooser.theme.name == "light"
    chooser.show("contrast")
    assert chooser.theme.name == "contrast-light"


def test_every_theme_is_described_and_can_be_shown(tmp_path: Path) -> None:
    assert set(DESCRIPTIONS) == {*THEME_NAMES, *AUTOMATIC}
    for name in DESCRIPTIONS:
        chooser = ThemeChooser(name, MANY, tmp_path)
        assert chooser.problems == ()
        assert set(chooser.theme.styles) == set(STYLES)


# --- own themes ---


def test_an_own_theme_changes_what_it_names_and_keeps_the_rest_of_its_base(tmp_path: Path) -> None:
    write_theme(
        tmp_path,
        "mine",
        """
        base = "light"
        [colours]
        accent = "#036"
        quiet = 8
        [styles]
        "diff.added.word" = "bold #104010 on added"
        heading = "italic blue"
        tool.done = "accent"
        """,
    )
    chooser = ThemeChooser("mine", MANY, tmp_path)
    theme, base = chooser.theme, ThemeChooser("light", MANY, tmp_path).theme
    assert chooser.problems == ()
    assert theme.resolve("prompt").foreground == theme.resolve("tool.done").foreground == "#003366"
    assert theme.resolve("dim").foreground == "8"
    added = theme.resolve("diff.added.word")
    assert (added.foreground, added.background, added.bold) == ("#104010", PALETTES["light"].colours["added"], True)
    assert theme.resolve("heading").italic
    assert not theme.resolve("heading").bold
    assert theme.resolve("error") == base.resolve("error")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('base = "drak"', ["base = 'drak'", "dark, light, ansi, contrast-dark, contrast-light"]),
        ('colors = "x"', ["“colors” is not known here", "base, colours, styles"]),
        ('[colours]\nacent = "#fff"', ["[colours] acent: no such colour", "did you mean accent?"]),
        ('[colours]\nzzz = "#fff"', ["[colours] zzz", "there are text, page, accent"]),
        ('[colours]\nred = "pink"', ["[colours] red = 'pink'", '"#rrggbb"', "0 to 255"]),
        ("[colours]\nred = 256", ["[colours] red = 256"]),
        ("[colours]\nred = true", ["[colours] red = True"]),
        ('[colours]\nred = "bold"', ["[colours] red = 'bold'"]),
        ("colours = 3", ["colours must be a table"]),
        ('[styles]\nheadin = "bold"', ["[styles] headin: no such style", "did you mean heading?"]),
        ('[styles]\n"diff.added" = "green on addd"', ["[styles] diff.added", "“addd”; did you mean added?"]),
        ("[styles]\nerror = 4", ["[styles] error = 4", "a style is made of bold"]),
    ],
)
def test_what_is_wrong_is_named_with_file_key_and_what_is_allowed(tmp_path: Path, text: str, wanted: list[str]) -> None:
    file = write_theme(tmp_path, "mine", text)
    chooser = ThemeChooser("mine", MANY, tmp_path)
    assert chooser.theme.name == "mine"
    (problem,) = chooser.problems
    assert problem.startswith(str(file))
    for part in (*wanted, "left out"):
        assert part in problem
    assert chooser.theme.styles == ThemeChooser("dark", MANY, tmp_path).theme.styles


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.write_text("base = "),
        lambda file: file.write_bytes(b"\xff\xfe"),
        lambda file: file.mkdir(),
        lambda file: file.write_text("[[[" * 50_000),
    ],
    ids=["broken", "binary", "folder", "huge"],
)
def test_a_file_that_cannot_be_read_falls_back_and_says_so(tmp_path: Path, make) -> None:
    (tmp_path / "themes").mkdir()
    make(tmp_path / "themes" / "mine.toml")
    chooser = ThemeChooser("mine", {**MANY, "COLORFGBG": "0;15"}, tmp_path)
    assert chooser.theme.name == "light"
    (problem,) = chooser.problems
    assert problem.startswith(str(tmp_path / "themes" / "mine.toml"))
    assert problem.endswith("the theme is not used")


@pytest.mark.parametrize("name", ["nowhere", "../settings", "", "a/b", "mine.toml"])
def test_a_theme_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, name: str) -> None:
    write_theme(tmp_path, "mine", "")
    (tmp_path / "settings.toml").write_text('[ui]\ntheme = "x"')
    chooser = ThemeChooser(name, MANY, tmp_path)
    assert chooser.theme.name == "dark"
    (problem,) = chooser.problems
    for part in (f"“{name}”", "contrast-light, mine", str(tmp_path / "themes")):
        assert part in problem


@pytest.mark.parametrize(("name", "meant"), [("lihgt", "light"), ("mien", "mine")])
def test_a_theme_that_is_mistyped_is_told_with_the_nearest(tmp_path: Path, name: str, meant: str) -> None:
    write_theme(tmp_path, "mine", "")
    (problem,) = ThemeChooser(name, MANY, tmp_path).problems
    assert problem.endswith(f"; did you mean {meant}?")


def test_an_own_theme_cannot_take_the_name_of_one_of_ours(tmp_path: Path) -> None:
    write_theme(tmp_path, "dark", '[colours]\naccent = "#fff"')
    write_theme(tmp_path, "mine", "")
    (tmp_path / "themes" / "notes.txt").write_text("")
    assert own_themes(tmp_path) == ("mine",)
    assert own_themes(tmp_path / "nothing") == ()
    assert ThemeChooser("dark", MANY, tmp_path).theme.resolve("accent").foreground != "#ffffff"


def test_what_stands_in_a_row_with_an_own_style_has_its_ground(tmp_path: Path) -> None:
    write_theme(
        tmp_path, "mine", '[styles]\n"diff.added" = "bold green"\n"user.text" = "bold on #202020"\n"user.bar" = "red"'
    )
    theme = ThemeChooser("mine", MANY, tmp_path).theme
    dark = PALETTES["dark"].colours
    assert theme.resolve("diff.added.sign") == theme.resolve("diff.added")._replace(bold=False)
    assert theme.resolve("diff.number diff.added").background is None
    assert theme.resolve("diff.removed.sign").background == dark["removed"]
    assert theme.resolve("user.pending").background == theme.resolve("user.image").background == "#202020"
    assert theme.resolve("user.bar").background is None, "what is named itself is as it is named"


def test_styles_that_are_hard_to_read_are_named(tmp_path: Path) -> None:
    write_theme(tmp_path, "mine", '[colours]\nquiet = "#333333"\nred = "#f28779"')
    chooser = ThemeChooser("mine", MANY, tmp_path)
    (problem,) = chooser.problems
    assert "hard to read (contrast under 4.5)" in problem
    assert "dim" in problem
    assert "error" not in problem
    assert chooser.theme.resolve("dim").foreground == "#333333"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)


@given(TEXTS)
def test_no_text_breaks_the_reader(text: str) -> None:
    theme, problems = read_theme("mine", text)
    assert isinstance(theme, Theme) or problems


@given(
    st.dictionaries(st.sampled_from([*STYLES, "x"]), TEXTS | st.integers() | st.booleans(), max_size=3),
    st.dictionaries(st.sampled_from([*PALETTES["dark"].colours, "x"]), TEXTS | st.integers(), max_size=3),
)
def test_whatever_the_values_are_the_theme_has_every_style(
    styles: dict[str, object], colours: dict[str, object]
) -> None:
    import tomlkit

    theme, problems = read_theme("mine", tomlkit.dumps({"styles": styles, "colours": colours}))
    if theme is not None:
        assert set(theme.styles) == set(STYLES)
        assert all(not style.foreground or style.foreground[0] in "#0123456789" for style in theme.styles.values())
    assert ("x" not in styles and "x" not in colours) or problems


def test_the_page_for_theme_makers_names_every_theme_colour_and_style_and_its_example_is_good(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "themes.md").read_text(encoding="utf-8")
    for name in (*DESCRIPTIONS, *STYLES, *PALETTES["dark"].colours):
        assert f"`{name}`" in page, name
    example = page.partition("```toml\n")[2].partition("```")[0]
    write_theme(tmp_path, "mine", example)
    assert ThemeChooser("mine", MANY, tmp_path).problems == ()


# --- `/theme` ---


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
