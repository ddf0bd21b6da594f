"""Style names and colours."""

import pytest

from tenuto.tui.render.theme import THEME_NAMES, Style, contrast_ratio, find_theme

NOT_TEXT = {"faint", "rule", "quote.bar", "selection", "panel"}
"""Lines and surfaces: nothing is read in them by itself."""


@pytest.mark.parametrize("name", ["dark", "light", "contrast"])
def test_text_is_readable(name):
    theme = find_theme(name)
    wanted = 7.0 if name == "contrast" else 4.5
    low = {}
    for key, style in theme.styles.items():
        if key in NOT_TEXT:
            continue
        ratio = contrast_ratio(style.foreground or theme.foreground, style.background or theme.background)
        if ratio < wanted:
            low[key] = round(ratio, 2)
    assert not low


@pytest.mark.parametrize("name", ["dark", "light", "contrast"])
def test_selected_text_is_readable(name):
    theme = find_theme(name)
    assert contrast_ratio(theme.foreground, theme.resolve("selection").background) >= 4.5


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
