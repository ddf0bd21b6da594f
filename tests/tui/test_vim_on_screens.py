"""vi's keys on both screens: the prompt, the footer, history and sending."""

from __future__ import annotations

from tenuto.config.settings import UiSettings
from tests.tui.full import support as full
from tests.tui.inline import support as inline

UI = UiSettings(reduce_motion=True, editing="vim")


async def test_the_full_screen_has_vis_keys_and_says_the_mode():
    async with full.running_app(ui=UI) as screen:
        assert "INSERT" in screen.text()
        await screen.burst([*"one two three", "escape"])
        assert "NORMAL" in screen.text()
        await screen.burst([*"0wdw"])
        assert screen.app.composer.text == "one three"
        await screen.burst([*"2"])
        assert "NORMAL 2" in screen.text()
        await screen.burst(["escape", *"u"])
        assert screen.app.composer.text == "one two three"
        await screen.burst([*"viw"])
        assert "VISUAL" in screen.text()
        assert screen.app.composer.chosen == "two"
        await screen.burst([*"cfour", "escape", *"A!"])
        assert screen.app.composer.text == "one four three!"
        await screen.burst(["escape", *"oa line", "escape", *"V"])
        assert "VISUAL LINE" in screen.text()
        assert screen.app.composer.chosen == "a line"
        await screen.burst([*"d"])
        assert screen.app.composer.text == "one four three!"
        await screen.burst(["escape", "enter"])
        assert screen.runtime.prompts == ["one four three!"]
        assert screen.app.composer.text == ""
        assert "INSERT" in screen.text()


async def test_the_inline_screen_has_vis_keys_and_says_the_mode():
    async with inline.running_app(ui=UI) as session:
        await session.shows("INSERT")
        session.type("one two three")
        await session.shows("one two three")
        session.type("\x1b")
        await session.shows("NORMAL")
        session.type("0wdw")
        await session.shows("one three")
        session.type("u")
        await session.shows("one two three")
        session.type("viw")
        await session.shows("VISUAL")
        session.type("cfour")
        await session.shows("one four three")
        session.type("\r")
        await session.until(lambda: session.runtime.prompts == ["one four three"])
        await session.shows("INSERT")


async def test_without_the_setting_nothing_is_said_and_esc_is_what_it_was():
    async with full.running_app() as screen:
        await screen.burst([*"one", "escape", *"x"])
        assert screen.app.composer.text == "onex"
        assert "INSERT" not in screen.text()


async def test_at_the_first_row_k_goes_through_the_history():
    async with full.running_app(ui=UI) as screen:
        await screen.burst([*"first", "enter"])
        await screen.settle()
        await screen.burst(["escape", *"k"])
        assert screen.app.composer.text == "first"
        await screen.burst([*"j"])
        assert screen.app.composer.text == ""
