"""A prompt over the trigger, seen from the screen: Compact, wait, then Run; no question (seed 000, phase 4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tenuto.command.runtime import CommandRuntime
from tenuto.protocol.event import (
    AnyEvent,
    CompactionEndEvent,
    CompactionStartEvent,
    TaskFinishedEvent,
    TaskStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import CompactionEntry, UserMessage
from tenuto.protocol.part import text_of
from tenuto.tui.runner import Runner
from tenuto.tui.state.effects import DraftSet, ItemRemoved, ScreenEffect, TranscriptReset
from tenuto.tui.state.intents import Escape
from tenuto.tui.state.item import CompactionItem, UserItem
from tests.core.compacting import is_summary_request, step_requests, summary_requests, talk, until
from tests.core.harness import make_start
from tests.server import Hang, Reply, Request, ScriptedServer

LONG = "fine " * 2_500
WINDOW = 16_000


class Screen:
    """A runner over a real core, with every event and effect written down."""

    def __init__(self, runtime: CommandRuntime, server: ScriptedServer) -> None:
        self.runtime = runtime
        self.server = server
        self.events: list[AnyEvent] = []
        self.effects: list[ScreenEffect] = []
        self.labels: list[str] = []
        self.runner = Runner(runtime, self.effects.extend)
        self.sending: asyncio.Future[None]
        self.runner.start()
        runtime.subscribe(self.watch)

    def watch(self, event: AnyEvent) -> None:
        self.events.append(event)
        self.labels.append(self.runner.state.spinner.label)

    async def ask(self, text: str) -> None:
        await self.runner.submit_user_input(text)
        await asyncio.wait_for(self.runtime.wait_settled(), 20)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def items(self):
        return self.runner.state.transcript.ordered()

    def prompts(self) -> list[str]:
        return [item.text for item in self.items if isinstance(item, UserItem)]


@asynccontextmanager
async def screen(tmp_path: Path, script, **environ: str) -> AsyncIterator[Screen]:
    async with ScriptedServer(script, window=WINDOW) as server:
        runtime = CommandRuntime(make_start(tmp_path, {**server.environ(), **environ}))
        shown = Screen(runtime, server)
        await runtime.open()
        await runtime.opener.wait_for_facts()
        try:
            yield shown
        finally:
            await shown.runner.close()
            await runtime.close()


async def ask_until_it_compacts(shown: Screen) -> int:
    """Send prompts until one starts a compaction; return how many were sent."""
    for number in range(1, 13):
        sending = asyncio.ensure_future(shown.ask(f"question {number} " + "because " * 300))
        await until(lambda sending=sending: sending.done() or shown.of(CompactionStartEvent))
        if shown.of(CompactionStartEvent):
            shown.sending = sending
            return number
        await sending
    raise AssertionError("never over the trigger")


async def test_runner_threshold_compaction_runs_before_the_prompt_and_the_prompt_once(tmp_path):
    async with screen(tmp_path, talk(LONG)) as shown:
        count = await ask_until_it_compacts(shown)
        await shown.sending
        (start,), (end,) = shown.of(CompactionStartEvent), shown.of(CompactionEndEvent)
        assert start.reason == end.reason == "threshold"
        assert not end.aborted
        kinds = [event.kind for event in shown.of(TaskStartedEvent)]
        assert kinds[-2:] == ["compaction", "agent"]
        places = [shown.events.index(shown.of(kind)[-1]) for kind in (CompactionEndEvent, UserMessageEvent)]
        assert places == sorted(places), "the prompt is sent when the compaction is over"
        assert shown.events.index(end) < shown.events.index(shown.of(TaskFinishedEvent)[-2])

        sent = [one for one in shown.runtime.live.session.path() if isinstance(one, UserMessage)]
        assert len(sent) == len(shown.prompts()) == count, "submitted once, shown once"
        assert shown.prompts()[-1].startswith(f"question {count}")
        assert len(step_requests(shown.server)) == count
        assert f"question {count} ".encode() not in summary_requests(shown.server)[0].raw, "R-045"
        assert not shown.server.refusals


async def test_the_screen_shows_compacting_meanwhile_asks_nothing_and_is_not_cleared(tmp_path):
    async with screen(tmp_path, talk(LONG)) as shown:
        count = await ask_until_it_compacts(shown)
        await shown.sending
        begun, ended = (shown.events.index(shown.of(kind)[0]) for kind in (CompactionStartEvent, CompactionEndEvent))
        assert set(shown.labels[begun:ended]) == {"Compacting"}
        assert "Compacting" not in shown.labels[ended:]
        resets = [effect for effect in shown.effects if isinstance(effect, TranscriptReset)]
        assert len(resets) == 2, "those of the opening"
        removed = [effect for effect in shown.effects if isinstance(effect, ItemRemoved)]
        blocks = [item for item in shown.items if isinstance(item, CompactionItem)]
        assert len(blocks) == 1
        assert blocks[0].folded
        assert blocks[0].entry is not None
        assert blocks[0].id not in [effect.id for effect in removed]
        assert len(shown.prompts()) == count


async def test_esc_during_it_puts_the_prompt_back_into_the_editor(tmp_path):
    async with screen(tmp_path, talk(LONG, Hang())) as shown:
        count = await ask_until_it_compacts(shown)
        await until(lambda: summary_requests(shown.server))
        shown.runner.handle(Escape())
        await asyncio.wait_for(shown.sending, 30)
        state = shown.runner.state
        assert state.pastes.expand(state.draft.text) == f"question {count} " + "because " * 300
        assert any(isinstance(effect, DraftSet) for effect in shown.effects)
        assert not shown.runtime.live.session.state.queue
        assert not [one for one in shown.runtime.live.session.path() if isinstance(one, CompactionEntry)]
        assert len(step_requests(shown.server)) == count - 1
        sent = [text_of(one.parts) for one in shown.runtime.live.session.path() if isinstance(one, UserMessage)]
        assert len(sent) == count - 1
        assert shown.runner.state.spinner.top is None


async def test_when_it_fails_the_prompt_is_sent_all_the_same_where_it_fits(tmp_path):
    """The summariser is broken and the digest takes its place: nobody has to type again."""

    def script(request: Request):
        return Reply("") if is_summary_request(request) else Reply(LONG)

    async with screen(tmp_path, script) as shown:
        count = await ask_until_it_compacts(shown)
        await shown.sending
        assert len(step_requests(shown.server)) == count
        (entry,) = [one for one in shown.runtime.live.session.path() if isinstance(one, CompactionEntry)]
        assert entry.rung == "digest"


async def test_r015_switched_off_nothing_is_compacted(tmp_path):
    async with screen(tmp_path, talk(LONG), TENUTO_COMPACTION__ENABLED="false") as shown:
        for number in range(3):
            await shown.ask(f"question {number} " + "because " * 300)
        assert not shown.of(CompactionStartEvent)
