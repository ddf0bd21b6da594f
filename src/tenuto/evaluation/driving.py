"""Playing one story with the real agent, looking at what the model is sent after each compaction, and the figures.

The figures of many sessions are a table, held against bars.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tenuto.api.agent import Agent
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.pins import pin
from tenuto.core.state.request import build_request
from tenuto.evaluation.phrases import SetName
from tenuto.evaluation.scripted import SUMMARISERS, Account, ScriptedModel, ScriptedTransport, Summariser, count_request
from tenuto.evaluation.stories import KINDS, Call, Fact, Kind, Step, Story, Turn, View, log_chars, make_story
from tenuto.evaluation.wires import Wire, read_request
from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import register_transport, unregister_transport
from tenuto.model.registry import new_client
from tenuto.protocol.event import AnyEvent, CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.model import ModelError, ModelRequest
from tenuto.tool.search.record import Question, recall
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


SHOWN_ROUNDS = (1, 3, 6, 11)
HAS_NO_VIEW: frozenset[Kind] = frozenset({"content", "buried"})
"""Kinds that recall alone has to find: contents of files, and what stood in the middle of a huge output."""


class Bar(msgspec.Struct, frozen=True):
    """What has to be in view after the last round: at least `least` percent of each kind.

    It holds for the summarisers named, in windows from `window` tokens on.
    """

    kinds: tuple[Kind, ...]
    least: int
    summarisers: tuple[Summariser, ...] = SUMMARISERS
    window: int = 0


BARS = (
    Bar(("pin", "todo", "user short", "number", "date", "name", "correction", "user head", "user end"), 100),
    Bar(("user middle",), 60, window=16_384),
    Bar(("user middle",), 90, window=65_536),
    Bar(("modified",), 100),
    Bar(("read",), 90),
    Bar(("decision", "reversed", "promise", "identifier", "error"), 100, ("honest",)),
    Bar(("decision", "reversed", "promise"), 80, ("refusing",)),
    Bar(("identifier", "error"), 60, ("refusing",)),
)
BEFORE_ERROR, AFTER_ERROR = 2.0, 5.0
"""Percent by which the told sizes may be off."""
LEAST_PREFIX = 95.0
"""Percent of all that is sent in summary requests in place: what the request before each began with too."""


class Miss(msgspec.Struct, frozen=True):
    """A bar that was missed: where, what, and how."""

    window: int
    summariser: Summariser
    what: str


class Share(msgspec.Struct, frozen=True):
    """How many of how many."""

    had: int
    of: int

    @property
    def percent(self) -> int:
        """The share in whole percent, rounded down: 100 is all of them."""
        return 100 * self.had // self.of

    @classmethod
    def count(cls, values: Iterable[bool]) -> Share:
        """Count those that are true."""
        seen = list(values)
        return cls(sum(seen), len(seen))

    def __str__(self) -> str:
        return f"{self.percent}" if self.of else "."


Column = tuple[int, Summariser]


class Report:
    """Figures by window and summariser."""

    def __init__(self, figures: Sequence[Figures]) -> None:
        self.figures = tuple(figures)
        self._columns: dict[Column, list[Figures]] = {}
        for one in figures:
            self._columns.setdefault((one.case.window, one.case.summariser), []).append(one)

    def in_view(self, column: Column, kind: Kind, number: int) -> Share:
        """Return how much of a kind was in view after a round, of all seeds together."""
        sights = (sight for one in self._columns[column] for sight in one.sights)
        return Share.count(sight.in_view for sight in sights if (sight.kind, sight.round) == (kind, number))

    def recalled(self, column: Column, kind: Kind) -> Share:
        """Return how much of a kind recall found at the end, the original first."""
        found = (fact for one in self._columns[column] for fact in one.recalled)
        return Share.count(fact.original for fact in found if fact.kind == kind)

    def misses(self) -> list[Miss]:
        """Return the bars that were missed."""
        return [Miss(*column, what) for column in self._columns for what in self._missed(column)]

    # --- bars ---

    def _missed(self, column: Column) -> Iterator[str]:
        window, summariser = column
        group = self._columns[column]
        last = group[0].case.rounds
        for bar in BARS:
            if summariser not in bar.summarisers or window < bar.window:
                continue
            for kind in bar.kinds:
                share = self.in_view(column, kind, last)
                if share.of and share.percent < bar.least:
                    yield f"{kind}: {share.percent} % in view after round {last}, {bar.least} wanted"
        stale = sum(sight.stale for one in group for sight in one.sights if sight.kind == "correction")
        if stale:
            yield f"a correction was gone and what it took back was there, {stale} times"
        for kind in KINDS:
            share = self.recalled(column, kind)
            if share.of and share.had < share.of:
                yield f"{kind}: {share.percent} % by recall, the original first"
        yield from _missed_numbers(group)

    # --- the table ---

    def rows(self) -> list[str]:
        """Return the report as lines."""
        if not self.figures:
            return ["nothing was measured"]
        last = self.figures[0].case.rounds
        rounds = [number for number in SHOWN_ROUNDS if number < last] + [last]
        heads = [f"{window} {summariser}" for window, summariser in self._columns]
        table = [("", *heads)]
        for kind in KINDS:
            cells = [
                " / ".join(str(self.in_view(column, kind, number)) for number in rounds) for column in self._columns
            ]
            if kind not in HAS_NO_VIEW:
                table.append((kind, *cells))
        found = [("by recall", *(str(self._all_recalled(column)) for column in self._columns))]
        numbers = [(name, *(str(read(self._columns[column])) for column in self._columns)) for name, read in _NUMBERS]
        seeds = sorted({one.case.seed for one in self.figures})
        protocols = ", ".join(dict.fromkeys(one.case.protocol for one in self.figures))
        sets = ", ".join(dict.fromkeys(one.case.phrases for one in self.figures))
        misses = self.misses()
        return [
            f"seeds {', '.join(map(str, seeds))}; {protocols}; {sets} phrases; "
            f"% word for word in the next request after round {' / '.join(map(str, rounds))} (. nothing planted yet)",
            "",
            *_aligned([*table, *found, *numbers]),
            "",
            *(f"missed: {miss.window} {miss.summariser}: {miss.what}" for miss in misses),
            f"{len(misses)} bars missed" if misses else "all bars hold",
            *(_trouble_rows(self.figures)),
        ]

    def _all_recalled(self, column: Column) -> Share:
        return Share.count(fact.original for one in self._columns[column] for fact in one.recalled)


def _before_error(group: Sequence[Figures]) -> float:
    sizes = (size for one in group for size in one.sizes)
    return round(max((100 * abs(size.told_before / size.before - 1) for size in sizes), default=0.0), 1)


def _after_error(group: Sequence[Figures]) -> float:
    sizes = (size for one in group for size in one.sizes)
    return round(max((100 * abs(size.told_after / size.after - 1) for size in sizes), default=0.0), 1)


def _over(group: Sequence[Figures]) -> int:
    return sum(len(one.over) for one in group)


def _stubs(group: Sequence[Figures]) -> int:
    return sum(len(one.stubs) for one in group)


def _in_place(group: Sequence[Figures]) -> float:
    """Return how many of the requests for a summary were the next step's and one message, in percent."""
    asked = sum(one.summaries for one in group)
    return round(100 * sum(len(one.cached) for one in group) / asked, 1) if asked else 100.0


def _prefix(group: Sequence[Figures]) -> float:
    """Return the share in percent; 100 where nothing was asked in place."""
    asked = sum(whole for one in group for _, whole in one.cached)
    return round(100 * sum(same for one in group for same, _ in one.cached) / asked, 1) if asked else 100.0


_NUMBERS = (
    ("told before, % off", _before_error),
    ("told after, % off", _after_error),
    ("over the window", _over),
    ("results as stubs", _stubs),
    ("summaries in place, %", _in_place),
    ("cached prefix, %", _prefix),
)


def _missed_numbers(group: Sequence[Figures]) -> Iterator[str]:
    if (error := _before_error(group)) > BEFORE_ERROR:
        yield f"the size told before was off by up to {error} %, {BEFORE_ERROR:g} allowed"
    if (error := _after_error(group)) > AFTER_ERROR:
        yield f"the size told after was off by up to {error} %, {AFTER_ERROR:g} allowed"
    if count := _over(group):
        yield f"{count} requests were over the window"
    if count := _stubs(group):
        yield f"{count} results came as less than a fifth while a quarter of the window was free"
    if (share := _prefix(group)) < LEAST_PREFIX:
        yield f"{share} % of the summary requests in place were cached, {LEAST_PREFIX:g} wanted"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _trouble_rows(figures: Sequence[Figures]) -> Iterator[str]:
    for one in figures:
        for text in one.troubles:
            yield f"trouble: {describe(one.case)}: {text}"


def describe(case: Case) -> str:
    """Return a case in a few words."""
    return f"seed {case.seed}, window {case.window}, {case.summariser}, {case.protocol}, {case.phrases} phrases"
