"""Style names and colours."""

import pytest

from tenuto.tui.render.theme import COLOUR_MEANINGS, DARK, PALETTES, STYLES, THEME_NAMES, Style, build_theme, find_theme
from tenuto.tui.render.theme_file import READABLE, SURFACES, Weak, contrast_ratio, weak_styles
from tenuto.tui.terminal.colours import is_light

ENHANCED = 7.0
"""WCAG 2.2, 1.4.6 (AAA): what the themes of high contrast keep."""
RGB_THEMES = [name for name in THEME_NAMES if name != "ansi"]


@pytest.mark.parametrize("name", RGB_THEMES)
def test_every_text_can_be_read_on_every_ground_that_it_can_stand_on(name):
    assert weak_styles(find_theme(name), ENHANCED if name.startswith("contrast") else READABLE) == []


@pytest.mark.parametrize("colours", [{"quiet": "#5c6370"}, {"added": "#8fc98b"}, {"selected": "#3a4a68"}])
def test_what_cannot_be_read_is_found(colours):
    theme = build_theme("weak", DARK._replace(colours={**DARK.colours, **colours}))
    found = weak_styles(theme)
    assert found
    assert all(isinstance(weak, Weak) and weak.ratio < READABLE for weak in found)
    grounds = {weak.ground for weak in found}
    assert {"quiet": "page", "added": "diff.added", "selected": "selection"}[next(iter(colours))] in grounds


def test_only_lines_and_grounds_are_not_judged():
    assert {STYLES[name] for name in SURFACES} == {"line", "on panel", "selected on selection"}


@pytest.mark.parametrize("name", RGB_THEMES)
def test_a_theme_is_made_for_the_ground_that_its_name_says(name):
    assert is_light(find_theme(name).background) == name.endswith("light")


def test_contrast_is_that_of_wcag():
    assert contrast_ratio("#000000", "#ffffff") == pytest.approx(21)
    assert contrast_ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", THEME_NAMES)
def test_a_palette_names_every_colour_and_no_other(name):
    assert set(PALETTES[name].colours) == set(COLOUR_MEANINGS)
    assert set(PALETTES[name].styles) <= set(STYLES)


@pytest.mark.parametrize("name", THEME_NAMES)
def test_added_and_removed_differ(name):
    theme = find_theme(name)
    assert theme.resolve("diff.added") != theme.resolve("diff.removed")
    assert theme.resolve("diff.added.word") != theme.resolve("diff.added")


def test_all_themes_know_the_same_names():
    names = {name: set(find_theme(name).styles) for name in THEME_NAMES}
    assert len({frozenset(keys) for keys in names.values()}) == 1


def test_words_are_applied_from_left_to_right():
    theme = find_theme("dark")
    style = theme.resolve("text bold code.inline italic @https://x.org")
    assert style.foreground == theme.resolve("code.inline").foreground
    assert (style.bold, style.italic, style.link) == (True, True, "https://x.org")
    assert theme.resolve("output fg=3 bg=#102030") == theme.resolve("output")._replace(
        foreground="3", background="#102030"
    )


def test_unknown_names_fall_back():
    theme = find_theme("dark")
    assert theme.resolve("code.keyword.reserved") == theme.resolve("code.keyword")
    assert theme.resolve("nothing.like.it") == Style()
    assert find_theme("nothing like it").name == "ansi"


@pytest.mark.parametrize("name", THEME_NAMES)
def test_no_color_leaves_attributes_only(name):
    theme = find_theme(name).without_colour()
    for key in [*theme.styles, "output fg=1 bg=2 bold"]:
        style = theme.resolve(key)
        assert style.foreground is None
        assert style.background is None
    assert theme.resolve("error").bold
    assert theme.resolve("selection").reverse


def test_the_ansi_theme_uses_the_terminals_own_colours():
    for style in find_theme("ansi").styles.values():
        assert style.foreground is None or 0 <= int(style.foreground) < 16
        assert style.background is None


def test_without_colours_attributes_tell_what_shades_told():
    plain = find_theme("dark").without_colour()
    for name in ("output", "dim", "faint", "placeholder", "rule"):
        assert plain.resolve(name).dim, name
    assert plain.resolve("user.text").bold
    assert plain.resolve("selection").reverse
    assert plain.resolve("diff.added.word").underline
    assert not plain.resolve("text").dim
    for name in ("contrast-dark", "contrast-light"):
        assert not any(style.dim for style in find_theme(name).without_colour().styles.values())
