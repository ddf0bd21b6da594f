"""The prefix as a property: whatever sub-agents and their files do, the parent's consecutive requests continue.

The machine changes what is on disk and has turns with sub-agents in them; the check is the same for whatever may come
and go beside a session (`check_prefix`), so that other machines can share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tenuto.protocol.message import CompactionEntry
from tests.core.compacting import LONG_ANSWER, compact, talk
from tests.core.harness import Agent, agent
from tests.core.test_children import is_child, results_in, task
from tests.server import HttpError, Reply, Request, ScriptedServer

NAMES = ("reviewer", "tester", "writer")
PLACES = ("work/.claude/agents", "work/.tenuto/agents", "home/agents")


def check_prefix(server: ScriptedServer, breaks: list[int]) -> None:
    """Assert that each request of the session continues the one before; at `breaks`, by their number, it need not."""
    own = [request for request in server.requests if request.kind == "model" and not is_child(request)]
    for number, (earlier, later) in enumerate(pairwise(own), 1):
        if number not in breaks:
            assert later.tool_names == earlier.tool_names
            assert later.items[0].text == earlier.items[0].text
            assert later.continues(earlier)


class ChildrenMachine(RuleBasedStateMachine):
    """A session whose sub-agents begin, end and fail while their files come and go."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._stack = contextlib.AsyncExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self.wanted: list[str] = []
        self.breaks: list[int] = []
        options = {"environ": {"HOME": str(self.folder / "home")}}
        self.running: Agent = self._do(
            self._stack.enter_async_context(agent(self.folder, talk(self._answer), **options))
        )

    def _do(self, work):
        return self._loop.run_until_complete(work)

    def _answer(self, request: Request) -> Reply:
        if is_child(request):
            return HttpError(400, "out of order") if "Fail" in request.raw.decode() else Reply("I did.")
        wanted, self.wanted = self.wanted, []
        calls = [task("Fail" if name == "writer" else "Do it", name) for name in wanted]
        return Reply("Go.", tool_calls=calls) if calls and not self._is_told(request) else Reply(LONG_ANSWER)

    @staticmethod
    def _is_told(request: Request) -> bool:
        return bool(request.items) and request.items[-1].kind == "result" and bool(results_in(request))

    @rule(name=st.sampled_from(NAMES), place=st.sampled_from(PLACES), words=st.sampled_from(("Reviews", "Looks on")))
    def write_file(self, name: str, place: str, words: str) -> None:
        path = self.folder / place / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: {words}\ntools: Read\n---\nYou do it.\n")

    @rule(name=st.sampled_from(NAMES), place=st.sampled_from(PLACES))
    def remove_file(self, name: str, place: str) -> None:
        (self.folder / place / f"{name}.md").unlink(missing_ok=True)

    @rule(place=st.sampled_from(PLACES))
    def write_rubbish(self, place: str) -> None:
        path = self.folder / place / "rubbish.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"---\nname: \xff\n")

    @rule(names=st.lists(st.sampled_from((*NAMES, "explore", "general")), max_size=2))
    def turn(self, names: list[str]) -> None:
        self.wanted = list(names)
        assert self._do(self.running.ask("PARENT " + "because " * 900)).outcome == "completed"

    @precondition(lambda self: len(self.running.server.requests) > 6)
    @rule()
    def compact(self) -> None:
        before = self._compactions()
        self._do(compact(self.running))
        if self._compactions() > before:
            own = [one for one in self.running.server.requests if one.kind == "model" and not is_child(one)]
            self.breaks += [len(own) - 1, len(own)]  # the request of the summary, and the first one behind it

    def _compactions(self) -> int:
        return sum(isinstance(entry, CompactionEntry) for entry in self.running.session.everything())

    @invariant()
    def prefix_is_stable(self) -> None:
        check_prefix(self.running.server, self.breaks)

    def teardown(self) -> None:
        self._do(self._stack.aclose())
        self._loop.close()


@pytest.mark.filterwarnings("ignore")
class TestJ5ChildrenKeepThePrefix(ChildrenMachine.TestCase):
    """Runs the machine."""

    settings = settings(max_examples=8, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck))


def test_j5_the_check_sees_a_broken_prefix() -> None:
    class Broken:
        kind, tool_names = "model", ("read",)

        def __init__(self, text: str) -> None:
            self.items = [type("Item", (), {"kind": "user", "text": text})()]

        def continues(self, other: object) -> bool:
            return False

    server = type("Server", (), {"requests": [Broken("PARENT a"), Broken("PARENT b")]})()
    with pytest.raises(AssertionError):
        check_prefix(server, [])
    check_prefix(server, [1])
