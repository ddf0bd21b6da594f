"""A crash costs at most the entry that was being written: view and transcript are those of a session without it."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.core.transcript import replay
from tenuto.protocol.event import ReplayFinishedEvent
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.session.build import RandomHistory, new_session
from tests.tui.machine.driving import SESSION, Driver
from tests.tui.machine.test_replay import shown

NOON = 1_000_000.0


def opened(home: Path, name: str, log: bytes) -> Session:
    """Return a session whose log is exactly these bytes."""
    directory = home / name
    directory.mkdir()
    (directory / LOG_NAME).write_bytes(log)
    return Session.open(directory, durability="none", clock=lambda: NOON)


def transcript(session: Session) -> list[tuple[object, ...]]:
    driver = Driver(resumed=True)
    driver.feed(*replay(SESSION, session.path()), ReplayFinishedEvent(session_id=SESSION))
    return shown(driver)


def looks(session: Session) -> tuple[object, ...]:
    return list(session.path()), session.get_llm_history(), transcript(session), session.state


@settings(suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 2**32), min_size=1, max_size=4))
def test_r062_crashes_at_any_byte_and_reloads_leave_what_would_be_without_them(seed, crashes):
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        session = new_session(home)
        for number, crash in enumerate(crashes):
            for _ in range(source.randrange(1, 25)):
                session.append(RandomHistory(source).next(list(session.entries())))
            session.close()
            log = (session.directory / LOG_NAME).read_bytes()
            header = log.index(b"\n") + 1
            cut = header + crash % (len(log) - header + 1)
            crashed = opened(home, f"crashed-{number}", log[:cut])
            # A line that only lacks its end is whole; every other part of one is the entry that was lost.
            whole = log[: log.index(b"\n", cut - 1) + 1] if cut < len(log) and log[cut : cut + 1] == b"\n" else b""
            spared = opened(home, f"spared-{number}", whole or log[: log.rindex(b"\n", 0, cut) + 1])
            assert looks(crashed) == looks(spared)
            follow = source.randrange(2**32)
            for _ in range(3):
                again = [RandomHistory(random.Random(follow)).next(list(one.entries())) for one in (crashed, spared)]
                assert again[0] == again[1]
                crashed.append(again[0])
                spared.append(again[1])
                follow += 1
            assert looks(crashed) == looks(spared), "and goes on in the same way"
            spared.close()
            session = crashed
        session.close()
