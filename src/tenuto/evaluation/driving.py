"""Playing one session with the real agent, looking at what the model is sent after each compaction, and the figures.

A session is a story that a seed makes, its steps played by a scripted model; or one that was recorded, whose entries
are appended as they were. Who writes the summaries is the scripted model, or a real one.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tenuto.api.agent import Agent
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.pins import pin
from tenuto.core.state.request import build_request
from tenuto.evaluation.folders import new_token, played_in
from tenuto.evaluation.phrases import SetName
from tenuto.evaluation.real import RecordingTransport, Sent, ask, is_answered, make_question
from tenuto.evaluation.recorded import Segment, read_recorded, split
from tenuto.evaluation.scripted import (
    KEEPS,
    Account,
    ScriptedModel,
    ScriptedTransport,
    Summariser,
    count_request,
    steady,
)
from tenuto.evaluation.stories import Call, Fact, Kind, Step, Story, Turn, View, log_chars, make_story
from tenuto.evaluation.strategies import STRATEGIES, StrategyName
from tenuto.evaluation.wires import NOTHING, Request, Usage, Wire, read_request
from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import HttpTransport, Transport, register_transport, unregister_transport
from tenuto.model.registry import new_client
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, CompactionStartEvent, NoticeEvent
from tenuto.protocol.model import ModelError, ModelRequest
from tenuto.tool.search.record import Question, recall
from tenuto.tool.search.search import Stop

PROVIDER = "evaluation"
MODEL = f"{PROVIDER}/scripted"
ADDRESS = "http://127.0.0.1:9"
"""Nothing is ever sent there; a local address needs no key."""
REAL_OUTPUT = 1_024
"""Tokens of an answer of a real model at most: it is not asked for work."""
_HEADING = re.compile(r"^#\d+ (.*) · \d{4}-\d\d-\d\d", re.MULTILINE)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One session to measure. `window` is in tokens, `keeps` the share of facts that the lossy summariser keeps.

    `recorded` is the file of a recorded session, empty for a story. `model` is a real model, as `provider/name`, empty
    for the scripted one.
    """

    seed: int
    window: int
    strategy: StrategyName = "ladder"
    keeps: float = KEEPS
    recorded: str = ""
    model: str = ""
    questions: int = 0
    """Of each kind, to a real model, after the last round."""
    rounds: int = 11
    summariser: Summariser = "honest"
    protocol: Wire = "anthropic"
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


class Answered(msgspec.Struct, frozen=True):
    """What a real model answered to a question about a fact."""

    kind: Kind
    text: str
    answer: str
    is_right: bool


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
    steps: Usage = NOTHING
    compactions: Usage = NOTHING
    compacting_seconds: float = 0.0
    largest: int = 0
    """Tokens of the largest request that a real model was sent, by its own count."""
    answers: tuple[Answered, ...] = ()
    made: int = 0
    """Compactions that were written."""
    is_stuck: bool = False
    """Whether no request was accepted any more before the last round was over."""


async def measure(case: Case, settings: str = "") -> Figures:
    """Play the session of a case in a temporary directory and return what was seen (see `measure_in`)."""
    with played_in(new_token()) as folder:
        return await measure_in(folder, case, settings)


async def measure_in(directory: Path, case: Case, settings: str = "") -> Figures:
    """Play the session of a case in a directory of its own and return what was seen.

    Only a real model is reached over the network; `settings` is the text of the settings that know it. Raises
    `RecordedError` for a file that is no recorded session.
    """
    model = ScriptedModel(case.protocol, case.window, case.summariser, case.seed, case.keeps)
    session = _Session(case, model, directory, settings)
    provider = case.model.partition("/")[0] or PROVIDER
    register_transport(provider, session.connect)
    try:
        return await session.play(time.monotonic())
    finally:
        unregister_transport(provider)


async def play(case: Case, model: ScriptedModel, directory: Path) -> Figures:
    """Play the session of a case in an empty directory; the transport of `PROVIDER` leads to `model`."""
    return await _Session(case, model, directory).play(time.monotonic())


class _Session:
    def __init__(self, case: Case, model: ScriptedModel, directory: Path, settings: str = "") -> None:
        self._case = case
        self._settings = settings
        self._sent: list[Sent] = []
        self._model = model
        self._story: Story = make_story(case.seed, case.window, case.rounds, case.phrases)
        self._segments = split(read_recorded(Path(case.recorded)), case.rounds) if case.recorded else []
        self._begun = self._compacting = 0.0
        self._strategy = STRATEGIES[case.strategy]()
        self._made = 0
        self._is_stuck = False
        self._is_counted = not (case.model or case.recorded)  # what was appended unsent, no usage told the size of
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
        async with self._agent() as agent:
            agent.subscribe(lambda event: self._note(agent, event))
            for number in range(1, self._case.rounds + 1):
                self._round = number
                await self._play_round(agent, number)
                await self._end_round(agent)
            recalled = tuple(self._recall(agent))
            answers = await self._question(agent)
        account = self._account()
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
            steps=account.steps,
            compactions=account.compactions,
            compacting_seconds=self._compacting,
            largest=max((one.prompt for one in self._sent), default=0),
            answers=answers,
            made=self._made,
            is_stuck=self._is_stuck,
        )

    def connect(self, endpoint: Endpoint) -> Transport:
        """Return how the session's model is reached: in this process, or over the network and counted."""
        if self._case.model:
            return RecordingTransport(HttpTransport(endpoint), self._sent.append)
        return ScriptedTransport(self._model.answer)

    def _prepare(self) -> None:
        self._home.mkdir()
        (self._project / "logs").mkdir(parents=True)
        kind, window = self._case.protocol, self._case.window
        settings = (
            f'[providers.{PROVIDER}]\nkind = "{kind}"\nbase_url = "{ADDRESS}"\n\n'
            f'[models."{MODEL}"]\ncontext_window = {window}\n'
        )
        (self._home / "settings.toml").write_text(self._settings if self._case.model else settings, encoding="utf-8")

    def _agent(self) -> Agent:
        case = self._case
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._home), "LANG": "C.UTF-8"}
        limits = {"context_window": case.window, "max_output_tokens": min(REAL_OUTPUT, case.window // 64)}
        return Agent(
            self._project,
            model=case.model or MODEL,
            mode="plan" if case.model else "auto",
            home=self._home,
            environ={**os.environ, **environ} if case.model else environ,
            compaction=self._strategy,
            settings={"models": {case.model: limits}} if case.model else {},
        )

    def _account(self) -> Account:
        """Return what was seen of the requests: by the scripted model, or by a real one's provider."""
        if not self._case.model:
            return self._model.account
        account = Account(requests=len(self._sent))
        for one in self._sent:
            account.count(one.usage, is_summary=one.is_summary)
            account.summaries += one.is_summary
            account.cached += [(one.usage.cached, one.prompt)] if one.in_place and one.prompt else []
            account.over += [one.prompt] if one.refused == "overflow" or one.prompt > self._case.window else []
        return account

    # --- turns and rounds ---

    async def _play_round(self, agent: Agent, number: int) -> None:
        if self._segments:
            await self._replay(agent, self._segments[number - 1])
            return
        for turn in self._story.rounds[number - 1]:
            await self._play_turn(agent, turn)

    async def _replay(self, agent: Agent, segment: Segment) -> None:
        """Append what was recorded and go on; the prompt finds the context over its trigger, or not yet."""
        session = agent.runtime.live.session
        for entry in segment.entries:
            session.append(entry)
        self._model.learn(segment.facts, segment.over)
        self._model.begin(())
        await self._ask(agent, self._story.go_on)

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
        if self._round not in self._sights or (self._round % 2 == 0 and not self._segments):
            try:
                await agent.compact()
            except TaskFailedError as error:
                self._trouble(f"/compact: {error}")
            self._model.look = self._look
        if self._case.model:
            self._look(View((await self._encode(build_request(agent.runtime.live))).texts))
        elif self._model.look is not None:
            self._model.begin(())
            await self._ask(agent, self._story.go_on)
        if self._round not in self._sights:
            self._is_stuck = True
            self._trouble("no request was accepted any more")
            self._look(View(()))

    async def _ask(self, agent: Agent, prompt: str) -> None:
        answer = await agent.run(prompt)
        if answer.outcome != "completed":
            self._trouble(f"{prompt[:40]!r}: {answer.outcome} {answer.error}")
        for number, event, before, after in self._told:
            if event.tokens_before and event.tokens_after and self._is_counted:
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
                self._begun = time.monotonic()
                self._before = build_request(agent.runtime.live)
            case CompactionEndEvent(aborted=False) if event.entry is not None or event.error is None:
                self._compacted = True
                self._made += 1
                self._compacting += time.monotonic() - self._begun
                self._model.look = self._look
                if self._before is not None:
                    self._told.append((self._round, event, self._before, build_request(agent.runtime.live)))
            case NoticeEvent(text=text) if f"strategy {type(self._strategy).__name__} " in text:
                self._trouble(text)  # another one was used, which is not what is measured
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
        return count_request(await self._encode(request))

    async def _encode(self, request: ModelRequest) -> Request:
        """Return what a request says that is not sent."""
        bodies: list[Request] = []

        def answer(body: bytes) -> Iterator[bytes]:
            bodies.append(read_request(self._case.protocol, steady(body)))
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
        return bodies[-1]

    async def _question(self, agent: Agent) -> tuple[Answered, ...]:
        """Ask a real model about facts of each kind, from what it is sent after the last round."""
        if not self._case.model:
            return ()
        live = agent.runtime.live
        client, request = live.models.client(live.facts.provider), build_request(live)
        answers: list[Answered] = []
        asked: Counter[Kind] = Counter()
        for fact in self._model.facts:
            question = make_question(fact)
            if question is None or asked[fact.kind] >= self._case.questions:
                continue
            asked[fact.kind] += 1
            try:
                answer = await ask(client, request, question)
            except ModelError as error:
                self._trouble(f"question: {error}")
                continue
            answers.append(Answered(fact.kind, fact.text, answer, is_answered(question, answer)))
        return tuple(answers)

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


def describe(case: Case) -> str:
    """Return a case in a few words."""
    what = Path(case.recorded).stem if case.recorded else f"seed {case.seed}, {case.phrases} phrases"
    return f"{what}, window {case.window}, {case.strategy}, {case.model or case.summariser}, {case.protocol}"
