"""The Python API: an agent as an object. `tenuto.Agent` resolves to the class here, on first use.

    async with tenuto.Agent(cwd="project", model="anthropic/claude-sonnet-5-5") as agent:
        answer = await agent.run("make the tests pass")
        await agent.compact("keep the API names")

Everything that needs approval follows `mode`; nobody is asked (DESIGN section 8).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from tenuto.config.sources import home_directory
from tenuto.core.errors import TaskFailedError
from tenuto.core.opening import check_directory
from tenuto.core.runtime import Runtime
from tenuto.core.start import Start
from tenuto.protocol.compaction import CompactionStrategy
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, Outcome
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, UserMessage
from tenuto.protocol.operation import CompactSessionOperation, InterruptOperation
from tenuto.protocol.part import TextPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.plans import proposed_plan, shown_answer

if TYPE_CHECKING:
    from tenuto.compaction.ways.preview import PlanDescription


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a prompt: the last answer's text, how the task ended, and the session's usage so far.

    `refused` is how many calls needed an approval: the mode did not allow them.
    """

    text: str
    outcome: Outcome
    error: str = ""
    usage: Usage = Usage()
    refused: int = 0


class Agent:
    """One session in one directory. Use it as an async context manager."""

    def __init__(
        self,
        cwd: str | Path = ".",
        *,
        model: str = "",
        mode: Mode = "auto",
        resume: str = "",
        temporary: bool = False,
        instructions: str = "",
        compaction: CompactionStrategy | None = None,
        sandboxed: bool = True,
        home: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        values = dict(os.environ if environ is None else environ)
        self._start = Start(
            cwd=check_directory(Path(cwd)),
            home=Path(home) if home is not None else home_directory(values),
            model=model,
            mode=mode,
            resume=resume,
            temporary=temporary,
            interactive=False,
            extra_prompt=instructions,
            compaction=compaction,
            sandboxed=sandboxed,
            environ=values,
        )
        self.runtime = Runtime(self._start)

    async def __aenter__(self) -> Self:
        """Open the session. Raises `UsageError` or `ModelError` when the start asks for what is not there."""
        await self.runtime.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session; what runs is interrupted."""
        await self.runtime.close()

    @property
    def session_id(self) -> str:
        """The session's id; `resume=` takes it."""
        return self.runtime.session_id

    def subscribe(self, listener: Callable[[AnyEvent], None]) -> Callable[[], None]:
        """Call `listener` for every event; returns what ends that."""
        return self.runtime.subscribe(listener)

    async def run(self, prompt: str) -> Answer:
        """Send a prompt and wait until the session is idle."""
        await self.runtime.submit_prompt((TextPart(text=prompt),))
        settled = await self.runtime.wait_settled()
        session = self.runtime.live.session
        return Answer(
            text=_last_answer(session.path()),
            outcome=settled.outcome,
            error=settled.error,
            usage=session.state.usage,
            refused=settled.refused,
        )

    async def compact(self, focus: str = "") -> CompactionEntry:
        """Compact the session and return the entry. Raises `TaskFailedError` with the reason when that did nothing."""
        ends: list[CompactionEndEvent] = []
        unsubscribe = self.subscribe(
            lambda event: ends.append(event) if isinstance(event, CompactionEndEvent) else None
        )
        try:
            operation = CompactSessionOperation(session_id=self.session_id, focus=focus or None)
            await self.runtime.wait_for(await self.runtime.submit(operation))
        finally:
            unsubscribe()
        if not ends or ends[-1].entry is None:
            raise TaskFailedError((ends[-1].error if ends else None) or "the compaction was cancelled")
        return ends[-1].entry

    async def preview_compaction(self, focus: str = "") -> PlanDescription:
        """Return what `compact` would do now, as data: the cut, sizes, files, requests. No model is asked."""
        from tenuto.core.compacting.preview import describe_compaction
        from tenuto.core.state.compaction_state import CompactionRequest

        return await describe_compaction(self.runtime.live, CompactionRequest(reason="manual", focus=focus))

    async def interrupt(self) -> None:
        """Stop whatever runs."""
        await self.runtime.submit(InterruptOperation(session_id=self.session_id))


def _last_answer(path: Sequence[HistoryEvent]) -> str:
    """Return the text of the last answer, with what of it came before the output limit cut it off."""
    texts: list[str] = []
    for entry in reversed(path):
        if isinstance(entry, UserMessage) and texts:
            break
        if isinstance(entry, AssistantMessage):
            if texts and not entry.is_cut_off:
                break
            texts.append(proposed_plan(entry) or text_of(shown_answer(entry).parts))
    return "".join(reversed(texts))
