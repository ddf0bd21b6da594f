"""A dozen pictures of the full screen, compared mark by mark with those that lie beside this file.

They are drawn from the app's own cells (`scripts/pictures`), so no font and no version of a plug-in is in them. When
something looks different on purpose: `scripts/golden`, look at the pictures, commit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.pictures.cells import from_strips, ground_of
from scripts.pictures.svg import picture

from tenuto.command.outcome import ShowContext
from tenuto.protocol.event import AnyEvent
from tenuto.tui.state import intents
from tenuto.tui.state.intents import Intent
from tests.tui.full.fake_runtime import queue_of
from tests.tui.full.support import Screen, running_app
from tests.tui.pictures import scenes
from tests.tui.render import golden, samples

FOLDER = Path(__file__).parent
MINUTE = 60.0


def compare(name: str, screen: Screen) -> None:
    """Compare what shows with the picture of that name."""
    strips = screen.app.screen._compositor.render_strips()
    theme = screen.app.palette.theme
    rows = from_strips(strips, ground_of(theme))
    golden.check(f"{name}.svg", picture(rows, screen.app.size.width, ground_of(theme).background, name), FOLDER)


async def show(
    name: str,
    events: Sequence[AnyEvent],
    *after: Intent | AnyEvent,
    size: tuple[int, int] = (100, 36),
    theme: str = "dark",
    seconds: float = 0.0,
) -> None:
    """Run the app on these events, then on what comes `seconds` later, and compare."""
    async with running_app(*events, size=size, theme=theme) as screen:
        screen.clock.now += seconds
        for one in after:
            if not isinstance(one, AnyEvent):
                screen.app.runner.handle(one)
            else:
                screen.runtime.emit(one)
        screen.app.repaint()
        await screen.settle()
        compare(name, screen)


async def test_the_first_screen() -> None:
    await show("first-screen", [scenes.OPENED], size=(80, 24))


async def test_a_conversation() -> None:
    await show("conversation", scenes.conversation(), size=(100, 50))


async def test_a_conversation_on_a_light_ground() -> None:
    await show("light", scenes.conversation(), size=(100, 50), theme="light")


async def test_a_conversation_on_forty_columns() -> None:
    await show("narrow", scenes.conversation(), size=(40, 60))


async def test_a_change_side_by_side() -> None:
    await show("diff-wide", [scenes.OPENED, *scenes.edit(1)], size=(160, 20))


async def test_a_command_that_needs_an_answer() -> None:
    await show("approval", scenes.asking_for_a_command(), intents.Tick(), seconds=MINUTE, size=(80, 24))


async def test_a_change_that_needs_an_answer() -> None:
    await show("approval-diff", scenes.asking_for_a_change(), intents.Tick(), seconds=MINUTE)


async def test_a_compaction_that_runs() -> None:
    await show("compacting", scenes.compacting(), intents.Tick(), seconds=8.0, size=(80, 24))


async def test_a_compaction_unfolded() -> None:
    await show("compacted", scenes.compacted(), intents.ToggleDetail())


async def test_what_fills_the_window() -> None:
    await show("context", [scenes.OPENED], ShowContext(samples.context_report()))


async def test_the_tree() -> None:
    await show("tree", scenes.conversation(), scenes.tree())


async def test_what_a_project_brings() -> None:
    await show("trust", [scenes.OPENED], scenes.trust(), intents.MovePicker(5))


async def test_the_queue_and_the_list_of_what_is_to_do() -> None:
    queue = queue_of("and charge the orders again", "then write it down")
    await show("queue", scenes.working_through_a_list(), queue, intents.Tick(), seconds=5.0, size=(80, 24))


async def test_the_keys() -> None:
    async with running_app(scenes.OPENED, size=(80, 40)) as screen:
        await screen.burst(["?"])
        compare("help", screen)
