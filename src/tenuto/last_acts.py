"""What the program owes others however suddenly it ends: commands are killed, the terminal is given back.

It is imported before the first paint, so it imports nothing itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_acts: list[Callable[[], None]] = []


def add_last_act(act: Callable[[], None]) -> Callable[[], None]:
    """Have `act` done before an end by force, the newest first; it may be called in any thread. Returns its removal."""
    _acts.append(act)
    return lambda: _acts.remove(act)


def do_last_acts() -> None:
    """Do what is owed. What one of them raises keeps no other from being done."""
    for act in reversed(_acts):
        try:  # noqa: SIM105 - contextlib takes milliseconds to import
            act()
        except Exception:  # noqa: BLE001 - the end is near, and nobody is left to tell
            pass
