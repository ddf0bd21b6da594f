"""How often a user is asked: the commands of recorded sessions, each judged as a call of `bash` is."""

from __future__ import annotations

import msgspec
import pytest

from tenuto.guard.approval import judge
from tenuto.guard.subject import Allow, Ask
from tenuto.protocol.entry import Mode
from tests.guard.recorded import COMMANDS, UNSELECTED_COMMANDS, Places, Recorded, make_places

SHARE_OF_READING_THAT_MAY_ASK = 0.10
SHARE_THAT_MAY_ASK_IN_A_SANDBOX = 0.02


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_places(tmp_path_factory.mktemp("recorded"), COMMANDS)


@pytest.fixture(scope="module")
def other_places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_places(tmp_path_factory.mktemp("unselected"), UNSELECTED_COMMANDS)


ELSEWHERE = "outside the workspace"
"""What asks for no other reason than the place is kept apart: that is meant to ask."""


def asked_in(mode: Mode, commands: list[Recorded], places: Places, *, confined: bool = False) -> list[str]:
    """Return the commands that ask, each behind its reason."""
    found: list[str] = []
    for recorded in commands:
        subject = msgspec.structs.replace(places.subject(recorded), confined=confined)
        verdict = judge(mode, subject, (), places.names)
        assert isinstance(verdict, Allow | Ask)
        if isinstance(verdict, Ask):
            found.append(f"{verdict.reason} ({recorded.session}): {recorded.command}")
    return found


def test_the_record_is_large_enough() -> None:
    assert len(COMMANDS) >= 200
    assert len({recorded.session for recorded in COMMANDS}) >= 10


def test_reading_work_of_real_sessions_hardly_asks(places: Places) -> None:
    reading = [recorded for recorded in COMMANDS if recorded.tag == "reading"]
    asked = asked_in("ask", reading, places)
    print(*asked, f"{len(asked)} of {len(reading)} reading commands ask", sep="\n")
    assert len(asked) <= SHARE_OF_READING_THAT_MAY_ASK * len(reading)


def test_what_changes_something_asks(places: Places) -> None:
    changing = [recorded for recorded in COMMANDS if recorded.tag == "changing"]
    assert len(asked_in("ask", changing, places)) == len(changing)


def test_in_a_sandbox_hardly_anything_asks(places: Places) -> None:
    asked = asked_in("auto", COMMANDS, places, confined=True)
    assert len(asked) <= SHARE_THAT_MAY_ASK_IN_A_SANDBOX * len(COMMANDS), asked
    assert len(asked_in("edits", COMMANDS, places, confined=True)) > len(asked), "the sandbox makes the difference"


def test_reading_work_that_nobody_chose_hardly_asks(other_places: Places) -> None:
    reading = UNSELECTED_COMMANDS
    asked = asked_in("ask", reading, other_places)
    elsewhere = [each for each in asked if ELSEWHERE in each]
    print(*asked, f"{len(asked)} of {len(reading)} ask, {len(elsewhere)} for the place alone", sep="\n")
    assert len(reading) >= 200
    assert len({recorded.session for recorded in reading}) >= 10
    assert len(asked) <= SHARE_OF_READING_THAT_MAY_ASK * len(reading)


def test_reading_work_that_nobody_chose_hardly_asks_in_a_sandbox(other_places: Places) -> None:
    asked = asked_in("auto", UNSELECTED_COMMANDS, other_places, confined=True)
    assert len(asked) <= SHARE_THAT_MAY_ASK_IN_A_SANDBOX * len(UNSELECTED_COMMANDS), asked
