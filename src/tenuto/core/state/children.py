"""The sub-agents of a session that run now: who they are, how many may, and where a word to one of them goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from tenuto.protocol.event import AnyEvent
from tenuto.protocol.operation import AnyOperation
from tenuto.session.session import Session


class RunningChild(Protocol):
    """A sub-agent while it runs; `core/children.py` has the one."""

    @property
    def children(self) -> Children:
        """Those that it has itself."""
        ...

    @property
    def call_id(self) -> str:
        """The call of its parent that runs it."""
        ...

    @property
    def label(self) -> str:
        """What the user knows it by: the agent's name, and what it is to do."""
        ...

    @property
    def facts(self) -> str:
        """How far it is, in words."""
        ...

    @property
    def spent(self) -> float:
        """What it and those below it have cost by now, in US dollars, as far as prices are known."""
        ...

    @property
    def is_asking(self) -> bool:
        """Whether it, or one below it, waits for the user."""
        ...

    @property
    def session(self) -> Session:
        """Its session."""
        ...

    def watch(self, listener: Callable[[AnyEvent], None] | None) -> None:
        """Have its events told to one listener, in the place of the one before; `None`: to nobody."""
        ...

    def move_to_background(self) -> None:
        """Let the commands that it and those below it wait for run on as background jobs."""
        ...

    async def submit(self, operation: AnyOperation) -> str:
        """Hand it an operation."""
        ...

    def load_blob(self, sha256: str) -> bytes:
        """Return an image of its session. Raises `FileNotFoundError`."""
        ...


class Children:
    """The running sub-agents of one session, by the ids of their sessions."""

    def __init__(self, side_by_side: int) -> None:
        self.running: dict[str, RunningChild] = {}
        self.turn = asyncio.Semaphore(side_by_side)
        """Held by each that works; who comes when all are taken waits."""

    def find(self, session_id: str) -> RunningChild | None:
        """Return the one with that session, here or further down."""
        for child_id, child in self.running.items():
            if found := child if child_id == session_id else child.children.find(session_id):
                return found
        return None

    def move_to_background(self) -> None:
        """Let the commands that they wait for run on as background jobs of theirs."""
        for child in self.running.values():
            child.move_to_background()

    @property
    def spent(self) -> float:
        """What those that run have cost by now, in US dollars: no log of their parents counts it yet."""
        return sum(child.spent for child in self.running.values())

    @property
    def is_asking(self) -> bool:
        """Whether one of them waits for the user."""
        return any(child.is_asking for child in self.running.values())

    def load_blob(self, sha256: str) -> bytes:
        """Return an image that one of them has. Raises `FileNotFoundError`."""
        for child in self.running.values():
            try:
                return child.load_blob(sha256)
            except FileNotFoundError:
                continue
        raise FileNotFoundError(sha256)
