"""`/search`: matches of all sessions of the project as a list; Enter opens the session at the match."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import Choose, FindText, Say
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.log.lock import SessionLock
from tenuto.session.session import Session
from tests.core.harness import agent
from tests.server import Reply


def earlier(tmp_path: Path, text: str) -> Path:
    (tmp_path / "work").mkdir(exist_ok=True)
    session = Session.create(tmp_path / "home", tmp_path / "work")
    session.append(UserMessage(parts=(TextPart(text=text),)))
    session.close()
    return session.directory


async def test_s8_a_match_is_offered_and_opens_its_session_there(tmp_path):
    directory = earlier(tmp_path, "first\n- we chose the *zebra* queue, `never` the other")
    async with agent(tmp_path, lambda _: Reply("A zebra crossing.")) as running:
        await running.ask("hello")
        here = running.session.directory.name
        (offer,) = await running.runtime.run_command("/search zebra")
        assert isinstance(offer, Choose)
        assert [row.value.partition("#")[0] for row in offer.choices] == [here, directory.name]
        assert "we chose the *zebra* queue" in offer.choices[1].label
        (found,) = await running.runtime.run_command(f"/search {offer.choices[0].value}")
        assert isinstance(found, FindText)
        assert running.session.directory.name == here, "a match of this session is gone to and nothing opened"
        (found,) = await running.runtime.run_command(f"/search {offer.choices[1].value}")
        assert running.session.directory == directory
        assert found == FindText("zebra"), "what marks of Markdown would hide is left out"


async def test_s8_a_session_that_is_open_elsewhere_is_looked_at(tmp_path):
    directory = earlier(tmp_path, "the zebra queue")
    lock = SessionLock(directory)
    lock.acquire()
    try:
        async with agent(tmp_path, lambda _: Reply("fine")) as running:
            (offer,) = await running.runtime.run_command("/search zebra")
            assert isinstance(offer, Choose)
            await running.runtime.run_command(f"/search {offer.choices[0].value}")
            assert running.session.directory == directory
            assert running.session.is_read_only
    finally:
        lock.release()


async def test_nothing_to_look_for_nothing_found_and_no_expression(tmp_path):
    async with agent(tmp_path, lambda _: Reply("fine")) as running:
        for line, part in (
            ("/search", "/search WORDS"),
            ("/search zebra", "No session"),
            ("/search zebra#1", "No session"),
        ):
            (said,) = await running.runtime.run_command(line)
            assert isinstance(said, Say)
            assert part in said.text
        earlier(tmp_path, "the zebra queue")
        (said,) = await running.runtime.run_command("/search /(/")
        assert isinstance(said, Say)
        assert "not a regular expression" in said.text
