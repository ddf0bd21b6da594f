"""Playing one story with the real agent, and looking at what the model is sent after each compaction."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tenuto.api import Agent
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.pins import pin
from tenuto.core.state.request import build_request
from tenuto.evaluation.phrases import SetName
from tenuto.evaluation.scripted import Account, ScriptedModel, ScriptedTransport, Summariser, count_request
from tenuto.evaluation.stories import Call, Fact, Kind, Step, Story, Turn, View, log_chars, make_story
from tenuto.evaluation.wires import read_request
from tenuto.model.endpoint import Endpoint, ProviderKind
from tenuto.model.http.transport import register_transport, unregister_transport
from tenuto.model.registry import new_client
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.model import ModelError, ModelRequest
from tenuto.tool.search.recalling import Question, recall
from tenuto.tool.search.search import Stop

PROVIDER = "evaluation"
MODEL = f"{PROVIDER}/scripted"
ADDRESS = "http://127.0.0.1:9"
"""Nothing is ever sent there; a local address needs no key."""
_HEADING = re.compile(r"^#\d+ (.*) · \d{4}-\d\d-\d\d", re.MULTILINE)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One session to measure. `window` is in tokens."""

    seed: int
    window: int
    rounds: int = 11
    summariser: Summariser = "honest"
    protocol: ProviderKind = "anthropic"
    phrases: SetName = "known"


class Sight(msgspec.Struct, frozen=True):
    """Whether a fact stood in the next request after a round; `stale`: what it took back stood there without it."""

    round: int
    kind: Kind
    text: str
    in_view: bool
    stale: bool


class Size(msgspec.Struct, frozen=True):
    """What was told of a compaction, and what was counted, in tokens."""

    round: int
    rung: str
    told_before: int
    before: int
    told_after: int
    after: int


class Recalled(msgspec.Struct, frozen=True):
    """Whether recall found a fact on its first page, and its original before any summary."""

    kind: Kind
    text: str
    found: bool
    original: bool


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one session."""

    case: Case
    sights: tuple[Sight, ...]
    sizes: tuple[Size, ...]
    recalled: tuple[Recalled, ...]
    requests: int
    summaries: int
    over: tuple[int, ...]
    stubs: tuple[tuple[int, int, int], ...]
    cached: tuple[tuple[int, int], ...]
    troubles: tuple[str, ...]
    seconds: float


async def measure(case: Case) -> Figures:
    """Play the story of a case in a temporary directory, without a network, and return what was seen."""
    with TemporaryDirectory(prefix="tenuto-eval-", ignore_cleanup_errors=True) as directory:
        model = ScriptedModel(case.protocol, case.window, case.summariser, case.seed)
        register_transport(PROVIDER, lambda _: ScriptedTransport(model.answer))
        try:
            return await play(case, model, Path(directory))
        finally:
            unregister_transport(PROVIDER)


async def play(case: Case, model: ScriptedModel, directory: Path) -> Figures:
    """Play the story of a case in an empty directory; the transport of `PROVIDER` leads to `model`."""
    return await _Session(case, model, directory).play(time.monotonic())


class _Session:
    def __init__(self, case: Case, model: ScriptedModel, directory: Path) -> None:
        self._case = case
        self._model = model
        self._story: Story = make_story(case.seed, case.window, case.rounds, case.phrases)
        self._project = directory / "project"
        self._home = directory / "home"
        self._round = 0
        self._compacted = False
        self._logs = self._fillers = 0
        self._before: ModelRequest | None = None
        self._told: list[tuple[int, CompactionEndEvent, ModelRequest, ModelRequest]] = []
        self._sights: dict[int, list[Sight]] = {}
        self._sizes: list[Size] = []
        self._troubles: list[str] = []

    async def play(self, started: float) -> Figures:
        """Play all rounds."""
        self._prepare()
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._home), "LANG": "C.UTF-8"}
        agent = Agent(self._project, model=MODEL, mode="auto", home=self._home, environ=environ)
        async with agent:
            agent.subscribe(lambda event: self._note(agent, event))
            for number, turns in enumerate(self._story.rounds, 1):
                self._round = number
                for turn in turns:
                    await self._play_turn(agent, turn)
                await self._end_round(agent)
            recalled = tuple(self._recall(agent))
        account: Account = self._model.account
        return Figures(
            case=self._case,
            sights=tuple(sight for sights in self._sights.values() for sight in sights),
            sizes=tuple(self._sizes),
            recalled=recalled,
            requests=account.requests,
            summaries=account.summaries,
            over=tuple(account.over),
            stubs=tuple(account.stubs),
            cached=tuple(account.cached),
            troubles=tuple(self._troubles),
            seconds=time.monotonic() - started,
        )

    def _prepare(self) -> None:
        self._home.mkdir()
        (self._project / "logs").mkdir(parents=True)
        kind, window = self._case.protocol, self._case.window
        settings = (
            f'[providers.{PROVIDER}]\nkind = "{kind}"\nbase_url = "{ADDRESS}"\n\n'
            f'[models."{MODEL}"]\ncontext_window = {window}\n'
        )
        (self._home / "settings.toml").write_text(settings)

    # --- turns and rounds ---

    async def _play_turn(self, agent: Agent, turn: Turn) -> None:
        for path, text in turn.files.items():
            self._write(path, text)
        for fact in turn.pins:
            pin(agent.runtime.live, fact.text)
        self._model.learn((*turn.pins, *turn.facts), turn.over)
        self._compacted = False
        self._fillers = 0
        self._model.begin(turn.steps, self._fill if turn.fills else None)
        await self._ask(agent, turn.prompt)

    async def _end_round(self, agent: Agent) -> None:
        """Compact if the round's own work did not, and have the next request looked at."""
        if self._round % 2 == 0 or self._round not in self._sights:
            try:
                await agent.compact()
            except TaskFailedError as error:
                self._trouble(f"/compact: {error}")
            self._model.look = self._look
        if self._model.look is not None:
            self._model.begin(())
            await self._ask(agent, self._story.go_on)

    async def _ask(self, agent: Agent, prompt: str) -> None:
        answer = await agent.run(prompt)
        if answer.outcome != "completed":
            self._trouble(f"{prompt[:40]!r}: {answer.outcome} {answer.error}")
        for number, event, before, after in self._told:
            if event.tokens_before and event.tokens_after:
                rung = event.entry.rung if event.entry is not None else ""
                real = await self._count(before), await self._count(after)
                self._sizes.append(Size(number, rung, event.tokens_before, real[0], event.tokens_after, real[1]))
        self._told.clear()

    def _fill(self) -> Step | None:
        """Return one more look at a log, until the context was compacted."""
        most = 6 * self._case.window // log_chars(self._case.window)
        if self._compacted or self._fillers >= most:
            return None
        self._logs += 1
        self._fillers += 1
        path, text = f"logs/run-{self._logs}.log", self._story.log(self._logs)
        self._write(path, text)
        return Step(calls=(Call("bash", {"command": f"cat {path}"}, len(text)),))

    def _write(self, path: str, text: str) -> None:
        file = self._project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _trouble(self, text: str) -> None:
        self._troubles.append(f"round {self._round}: {text}")

    # --- what is seen ---

    def _note(self, agent: Agent, event: AnyEvent) -> None:
        match event:
            case CompactionStartEvent():
                self._before = build_request(agent.runtime.live)
            case CompactionEndEvent(aborted=False) if event.entry is not None or event.error is None:
                self._compacted = True
                self._model.look = self._look
                if self._before is not None:
                    self._told.append((self._round, event, self._before, build_request(agent.runtime.live)))
            case CompactionEndEvent(error=str(error)):
                self._trouble(f"{event.reason}: {error}")
            case _:
                pass

    def _look(self, view: View) -> None:
        """Look for every fact in what the model is sent; the last look of a round counts."""
        self._sights[self._round] = [
            Sight(self._round, fact.kind, fact.text, view.has(fact.text), view.is_stale(fact))
            for fact in self._model.facts
        ]

    async def _count(self, request: ModelRequest) -> int:
        """Return the tokens of a request that is not sent."""
        sizes: list[int] = []

        def answer(body: bytes) -> Iterator[bytes]:
            sizes.append(count_request(read_request(self._case.protocol, body)))
            raise ModelError("cancelled", "only counted")

        name = f"{PROVIDER}-counting"
        register_transport(name, lambda _: ScriptedTransport(answer))
        try:
            client = new_client(Endpoint(provider=name, kind=self._case.protocol, base_url=ADDRESS), _no_blob)
            async for _ in client.stream(request):
                pass
        except ModelError as error:
            if error.kind != "cancelled":
                raise
        finally:
            unregister_transport(name)
        return sizes[-1]

    def _recall(self, agent: Agent) -> Iterator[Recalled]:
        context = agent.runtime.live.tool_context
        for fact in self._model.facts:
            answer = recall(Question(query=fact.ask), context.history.path(), context.outputs, Stop())
            yield _judge(fact, answer)


def _judge(fact: Fact, answer: str) -> Recalled:
    """Say what an answer of recall has of a fact: all its words in one block count."""
    words = [word.strip('"').casefold() for word in re.findall(r'"[^"]+"|\S+', fact.ask)]
    starts = [*_HEADING.finditer(answer)]
    ends = [*(start.start() for start in starts[1:]), len(answer)][: len(starts)]
    kinds = [
        start[1]
        for start, end in zip(starts, ends, strict=True)
        if all(word in answer[start.start() : end].casefold() for word in words)
    ]
    return Recalled(fact.kind, fact.text, bool(kinds), bool(kinds) and "summary" not in kinds[0])


def _no_blob(sha256: str) -> bytes:
    raise FileNotFoundError(sha256)
