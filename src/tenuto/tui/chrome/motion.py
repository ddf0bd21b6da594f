"""How much moves on the screen: `ui.reduce_motion`."""

from __future__ import annotations

from typing import Final, NamedTuple

from tenuto.config.settings import UiSettings

FRAME_SECONDS: Final = 0.1


class Motion(NamedTuple):
    """`spins`: the spinner moves. Seconds: `tick` between looks at the clock, `flush` between paints of a stream.

    What counts seconds changes every `step` of them.
    """

    spins: bool
    tick: float
    flush: float
    step: int

    def frame(self, now: float) -> int | None:
        """Return which picture of the spinner shows, `None` for the one that stands still."""
        return int(now / FRAME_SECONDS) if self.spins else None

    def shown_time(self, now: float) -> float:
        """Return the time as it is shown: it stands still between steps."""
        return now if self.step == 1 else now - now % self.step


MOTIONS: Final = {
    "off": Motion(spins=True, tick=FRAME_SECONDS, flush=1 / 15, step=1),
    "on": Motion(spins=False, tick=FRAME_SECONDS, flush=1 / 15, step=1),
    "strict": Motion(spins=False, tick=0.25, flush=1 / 3, step=5),
}


def motion_of(ui: UiSettings) -> Motion:
    """Return what the user wants; `true` and `false` are `on` and `off`."""
    wanted = ui.reduce_motion
    return MOTIONS[wanted if isinstance(wanted, str) else "on" if wanted else "off"]
