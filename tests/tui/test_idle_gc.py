"""Garbage is collected while nothing happens, and no timer is left then."""

from __future__ import annotations

import gc
import weakref

import pytest

from tenuto.tui.runner import ALL_AFTER, LEAST_NEW, QUIET, RestingCollector, collect_now


class Ring:
    """Something that only the collector can take away."""

    def __init__(self) -> None:
        self.itself = self


class Alarm:
    """One thing that will happen."""

    def __init__(self, at, function) -> None:
        self.at = at
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        """Let it not happen."""
        self.cancelled = True


class Stage:
    """A collector with a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[Alarm] = []
        self.collector = RestingCollector(lambda: self.now, self._call_later)

    def _call_later(self, seconds: float, function) -> Alarm:
        self.alarms.append(Alarm(self.now + seconds, function))
        return self.alarms[-1]

    def pass_until(self, now: float) -> None:
        """Let time pass, and happen what is due."""
        while due := [alarm for alarm in self.alarms if alarm.at <= now and not alarm.cancelled]:
            self.now = due[0].at
            self.alarms.remove(due[0])
            due[0].function()
        self.now = now


@pytest.fixture
def no_own_collections():
    """Yield while the collector runs only when it is told to."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(10**9, 10**6, 10**6)
    yield
    gc.set_threshold(*before)


def make_garbage() -> weakref.ref[Ring]:
    """Leave some behind; return whether it is there still."""
    rings = [Ring() for _ in range(2 * LEAST_NEW)]
    return weakref.ref(rings[0])


@pytest.mark.usefixtures("no_own_collections")
def test_garbage_goes_once_nothing_has_happened_for_a_while() -> None:
    """Not while something happens, however long that lasts; and no timer stays behind."""
    stage = Stage()
    garbage = make_garbage()
    for tenth in range(30):
        stage.pass_until(tenth / 10)
        stage.collector.note()
        assert len(stage.alarms) == 1
    assert garbage() is not None
    stage.pass_until(2.9 + QUIET - 0.01)
    assert garbage() is not None
    stage.pass_until(2.9 + QUIET + 0.01)
    assert garbage() is None
    assert not stage.alarms


@pytest.mark.usefixtures("no_own_collections")
def test_nothing_is_collected_while_the_collector_is_off_or_after_the_end() -> None:
    """The start switches it off, for keys that would wait."""
    stage = Stage()
    garbage = make_garbage()
    stage.collector.note()
    gc.disable()
    try:
        stage.pass_until(10.0)
    finally:
        gc.enable()
    assert garbage() is not None
    stage.collector.note()
    stage.collector.close()
    stage.pass_until(20.0)
    assert garbage() is not None


@pytest.mark.usefixtures("no_own_collections")
def test_what_is_old_is_looked_through_now_and_then() -> None:
    """Or the collector would do it by itself, in the middle of a key."""
    rings = [Ring() for _ in range(LEAST_NEW)]
    gc.collect()  # they are old from now on
    garbage = weakref.ref(rings[0])
    del rings
    kept: list[object] = []
    for _ in range(ALL_AFTER + 1):
        assert garbage() is not None
        kept += [[] for _ in range(2 * LEAST_NEW)]
        collect_now()
    assert garbage() is None
