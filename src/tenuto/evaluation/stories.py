"""Sessions with planted facts, made from a seed: what is typed, what the model does, what commands print. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Literal, get_args

import msgspec

from tenuto.evaluation.phrases import ADJECTIVES, NOUNS, PEOPLE, Language, SetName, load_phrases

Kind = Literal[
    "pin",
    "todo",
    "user short",
    "number",
    "date",
    "name",
    "correction",
    "user head",
    "user middle",
    "user end",
    "read",
    "modified",
    "decision",
    "reversed",
    "promise",
    "identifier",
    "error",
    "content",
    "buried",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
FROM_USER: frozenset[Kind] = frozenset(
    {"user short", "number", "date", "name", "correction", "user head", "user middle", "user end"}
)
BURIED_CHARS = 80_000
CLAIM_ROUNDS = frozenset({1, 3, 5, 8})
PASTE_ROUNDS = frozenset({1, 3, 6, 9})
CORRECTION_ROUNDS = frozenset({2, 4, 7})
"""Each of the corrections is of the oldest claim that stands: the first is of the first message."""
PIN_ROUNDS = frozenset({1, 4, 8})
MAX_TODO = 5


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that must not be lost. `text` stands in the session word for word, `ask` are words to recall it by.

    `old` is what it took back, empty if nothing.
    """

    kind: Kind
    text: str
    ask: str
    old: str = ""


class Call(msgspec.Struct, frozen=True):
    """A tool call of the model. `printed` is how many characters the tool will have to say (0: not measured)."""

    name: str
    arguments: dict[str, Any]
    printed: int = 0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model. `facts` are known once it was given and its calls have run, `over` are so no more."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    facts: tuple[Fact, ...] = ()
    over: tuple[Fact, ...] = ()


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and the answers to it. `files` are there before it, by their path in the working directory.

    `fills`: the model goes on looking at logs, before its last step, until the context was compacted.
    """

    prompt: str
    facts: tuple[Fact, ...] = ()
    over: tuple[Fact, ...] = ()
    pins: tuple[Fact, ...] = ()
    steps: tuple[Step, ...] = ()
    files: dict[str, str] = {}
    fills: bool = False


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A whole session. Each round ends with a compaction: by the threshold inside its last turn, or asked for.

    `go_on` is the prompt after each of them.
    """

    seed: int
    language: Language
    window: int
    go_on: str
    rounds: tuple[tuple[Turn, ...], ...]

    def log(self, number: int) -> str:
        """Return a log in which nothing is to be remembered."""
        return _log(Random(f"log {self.seed} {number}"), log_chars(self.window))


def log_chars(window: int) -> int:
    """Return how long one log is in a session of that window, in characters."""
    return min(30_000, max(1_600, window // 5))


def make_story(seed: int, window: int, rounds: int, phrases: SetName = "known") -> Story:
    """Return the session of a seed in the words of a set; its texts fit a window of `window` tokens."""
    return _Writer(seed, window, phrases).write(rounds)


class _Writer:
    def __init__(self, seed: int, window: int, phrases: SetName) -> None:
        self._random = Random(f"story {seed}")
        self._seed = seed
        self._window = window
        sentences = load_phrases(phrases)
        self._language: Language = sentences.language_of(seed)
        self._phrases = sentences.languages[self._language]
        self._printed = sentences.printed
        names = [f"{one}_{other}" for one in ADJECTIVES for other in NOUNS]
        self._random.shuffle(names)
        self._names = iter(names)
        numbers = list(range(1_010, 9_990, 7))
        self._random.shuffle(numbers)
        self._numbers = iter(numbers)
        self._turn: dict[str, int] = {}
        self._claims: list[tuple[str, Fact]] = []
        self._decisions: list[tuple[str, Fact]] = []
        self._failing: list[tuple[str, Fact]] = []
        self._todo: list[Fact] = []
        self._modules: list[tuple[str, str]] = []
        self._config = f"config/{next(self._names)}.toml"
        self._limit = 0
        self._content: Fact | None = None

    def write(self, rounds: int) -> Story:
        written = tuple(self._round(number) for number in range(1, rounds + 1))
        return Story(
            seed=self._seed,
            language=self._language,
            window=self._window,
            go_on=self._phrases.go_on,
            rounds=written,
        )

    # --- a round ---

    def _round(self, number: int) -> tuple[Turn, ...]:
        """Return the turns of a round; the last one has the most work."""
        turns = [self._opening_turn(number)]
        if number in CORRECTION_ROUNDS and self._claims:
            turns.append(self._correction_turn())
        if number in PASTE_ROUNDS:
            turns.append(self._paste_turn())
        turns += [self._rule_turn(number), self._work_turn(number)]
        return tuple(turns)

    def _opening_turn(self, number: int) -> Turn:
        """A wish with a value in it, which may turn out wrong, or plain work; files are read."""
        facts: tuple[Fact, ...] = ()
        prompt = self._next("work", self._phrases.work).format(a=next(self._names))
        if number in CLAIM_ROUNDS:
            name, value = next(self._names), next(self._numbers)
            template = self._phrases.first if number == 1 else self._next("claim", self._phrases.claims)
            prompt = template.format(a=name, n=value)
            fact = _sentence("user short", prompt, f"{name} {value}")
            self._claims.append((name, fact))
            facts = (fact,)
        files = dict(self._module() for _ in range(1 + number % 2))
        reads = tuple(_of_path("read", path) for path in files)
        calls = tuple(Call("read", {"path": path}) for path in files)
        decided = (self._decide(),) if number % 2 == 1 else ()
        said = " ".join((self._talk(), *map(self._ended, decided)))
        steps = (Step(calls=calls, facts=reads), Step(text=said, facts=decided))
        return Turn(prompt=prompt, facts=facts, files=files, steps=steps)

    def _correction_turn(self) -> Turn:
        name, claim = self._claims.pop(0)
        value = next(self._numbers)
        text = self._next("correction", self._phrases.corrections).format(o=name, n=value)
        fact = _sentence("correction", text, f"{name} {value}", old=claim.text)
        return Turn(prompt=text, facts=(fact,), over=(claim,), steps=(Step(text=self._talk()),))

    def _paste_turn(self) -> Turn:
        facts: list[Fact] = []
        kinds: tuple[Kind, ...] = ("user head", "user middle", "user end")
        for kind in kinds:
            name, value = next(self._names), next(self._numbers)
            day = self._random.choice(self._phrases.days)
            text = self._next("key", self._phrases.keys).format(a=name, n=value, d=day)
            said = [str(word) for word in (day, value) if str(word) in text]
            facts.append(_sentence(kind, text, " ".join((name, *said))))
        head, middle, end = map(self._ended, facts)
        length = min(4_000, self._window // 6)
        prose = [self._next("prose", self._phrases.prose) for _ in range(length // 75)]
        half = len(prose) // 2
        first, second = _paragraphs(prose[:half]), _paragraphs([middle, *prose[half:]])
        prompt = f"{self._phrases.paste}\n\n{head} {first}\n\n{second} {end}"
        return Turn(prompt=prompt, facts=tuple(facts), steps=(Step(text=self._talk()),))

    def _rule_turn(self, number: int) -> Turn:
        """Rules and plain facts in a line or two; a file is changed."""
        facts = [self._short("user short", self._phrases.rules)]
        if number % 3 == 1:
            others: tuple[tuple[Kind, tuple[str, ...]], ...] = (
                ("number", self._phrases.numbers),
                ("date", self._phrases.dates),
                ("name", self._phrases.names),
            )
            facts.append(self._short(*others[number // 3 % 3]))
        pins = (self._pin(),) if number in PIN_ROUNDS else ()
        changes = self._change_module() if number % 2 == 1 else ()
        content = self._change_content(number)
        return Turn(
            prompt=" ".join(map(self._ended, facts)),
            facts=tuple(facts),
            pins=pins,
            steps=(*changes, *content, self._todo_step(), Step(text=self._talk())),
        )

    def _work_turn(self, number: int) -> Turn:
        """Commands are run: their output names things, some fail; the model decides and promises."""
        name = next(self._names)
        files, steps = self._looking(number)
        decisions = [self._decide()] if number % 4 == 1 else []
        over: tuple[Fact, ...] = ()
        if number % 3 == 0:
            back, fact = self._reverse()
            decisions.append(fact)
            over = (back,)
        promises = (self._from_template("promise", self._phrases.promises),) if number % 2 == 0 else ()
        said = " ".join(map(self._ended, decisions))
        steps.append(Step(text=said, calls=(Call("bash", {"command": "ls logs"}),), facts=tuple(decisions), over=over))
        said = " ".join((self._talk(), *map(self._ended, promises)))
        steps.append(Step(text=said, facts=promises))
        prompt = self._next("work", self._phrases.work).format(a=name)
        return Turn(prompt=prompt, steps=tuple(steps), files=files, fills=number % 2 == 1)

    def _looking(self, number: int) -> tuple[dict[str, str], list[Step]]:
        log, named = self._log_with_names(1 + number % 2)
        path = f"logs/{next(self._names)}.log"
        files = {path: log}
        steps = [Step(calls=(Call("bash", {"command": f"cat {path}"}, len(log)),), facts=named)]
        if number % 2 == 1:
            check, fact = self._fail()
            files[check] = f"echo '{_quoted(fact.text)}' >&2\nexit 1\n"
            steps.append(Step(calls=(Call("bash", {"command": f"bash {check}"}),), facts=(fact,)))
        elif len(self._failing) > 1:
            check, fact = self._failing.pop(0)
            files[check] = "echo all good\n"
            steps.append(Step(calls=(Call("bash", {"command": f"bash {check}"}),), over=(fact,)))
        if number % 4 == 2:
            buried = self._identifier("buried")
            large = _log(self._random, BURIED_CHARS, {BURIED_CHARS // 2: f"checksum of the dump is {buried.text}"})
            files["logs/dump.log"] = large
            steps.append(Step(calls=(Call("bash", {"command": "cat logs/dump.log"}, BURIED_CHARS),), facts=(buried,)))
        return files, steps

    # --- pieces ---

    def _next(self, name: str, texts: tuple[str, ...]) -> str:
        """Return the next of the texts of a kind, in turn."""
        place = self._turn[name] = self._turn.get(name, -1) + 1
        return texts[(place + self._seed) % len(texts)]

    def _ended(self, fact: Fact) -> str:
        """Return a fact as a sentence that another may follow."""
        return fact.text + self._phrases.stop

    def _talk(self) -> str:
        text = self._next("talk", self._phrases.talk)
        return text.format(a=next(self._names)) if "{a}" in text else text

    def _short(self, kind: Kind, texts: tuple[str, ...]) -> Fact:
        name, value = next(self._names), next(self._numbers)
        day, person = self._random.choice(self._phrases.days), self._random.choice(PEOPLE)
        text = self._next(kind, texts).format(a=name, n=value, d=day, p=person)
        return _sentence(kind, text, name)

    def _from_template(self, kind: Kind, texts: tuple[str, ...]) -> Fact:
        return self._about(next(self._names), kind, texts)

    def _about(self, name: str, kind: Kind, texts: tuple[str, ...]) -> Fact:
        template = self._next(kind, texts)
        return _sentence(kind, template.format(a=name, w=_plain(name)), _named(template, name))

    def _pin(self) -> Fact:
        return msgspec.structs.replace(self._short("user short", self._phrases.rules), kind="pin")

    def _decide(self) -> Fact:
        name = next(self._names)
        fact = self._about(name, "decision", self._phrases.decisions)
        self._decisions.append((name, fact))
        return fact

    def _reverse(self) -> tuple[Fact, Fact]:
        """Return a decision and what the model decides in its place."""
        other, fact = self._decisions.pop(0)
        name = next(self._names)
        template = self._next("reversal", self._phrases.reversals)
        text = template.format(o=other, v=_plain(other), a=name, w=_plain(name))
        ask = f"{_named(template, other, 'v')} {_named(template, name)}"
        return fact, _sentence("reversed", text, ask, old=fact.text)

    def _module(self) -> tuple[str, str]:
        """Return the path and the text of a new source file."""
        folder = self._random.choice(("shop", "billing", "reports"))
        path = f"src/{folder}/{next(self._names)}.py"
        lines = [f"def step_{number}(value):\n    return value + {number}\n" for number in range(6)]
        text = f"TIMEOUT = {next(self._numbers)}\n\n" + "\n".join(lines)
        self._modules.append((path, text))
        return path, text

    def _change_module(self) -> tuple[Step, ...]:
        """Change the file that was read last."""
        path, text = self._modules[-1]
        before = text.partition("\n")[0]
        edit = Call("edit", {"path": path, "old_string": before, "new_string": f"TIMEOUT = {next(self._numbers)}"})
        return (Step(calls=(edit,), facts=(_of_path("modified", path),), over=(_of_path("read", path),)),)

    def _change_content(self, number: int) -> tuple[Step, ...]:
        """One file is written once and changed twice: the newest content counts."""
        if number not in {1, 3, 5}:
            return ()
        before, self._limit = self._limit, next(self._numbers)
        old = self._content
        line = f"limit = {self._limit}"
        fact = Fact(kind="content", text=line, ask=f'"{line}"', old=old.text if old else "")
        self._content = fact
        if old is None:
            call = Call("write", {"path": self._config, "content": f"[queue]\n{line}\nname = 'main'\n"})
            return (Step(calls=(call,), facts=(fact, _of_path("modified", self._config))),)
        change = {"path": self._config, "old_string": f"limit = {before}", "new_string": line}
        return (
            Step(calls=(Call("read", {"path": self._config}),)),
            Step(calls=(Call("edit", change),), facts=(fact,), over=(old,)),
        )

    def _todo_step(self) -> Step:
        new = self._from_template("todo", self._phrases.todos)
        gone = self._todo[: len(self._todo) + 1 - MAX_TODO]
        self._todo = [*self._todo[len(gone) :], new]
        states = ["done"] * (len(self._todo) - 2) + ["in_progress", "pending"]
        items = [
            {"text": fact.text, "status": state}
            for fact, state in zip(self._todo, states[-len(self._todo) :], strict=True)
        ]
        return Step(calls=(Call("todo", {"items": items}),), facts=(new,), over=tuple(gone))

    def _fail(self) -> tuple[str, Fact]:
        name, one, other = next(self._names), next(self._numbers), next(self._numbers)
        text = self._next("error", self._printed.errors).format(a=name, n=one, m=other)
        check = f"checks/{name}.sh"
        fact = Fact(kind="error", text=text, ask=f"{name} {one}")
        self._failing.append((check, fact))
        return check, fact

    def _log_with_names(self, count: int) -> tuple[str, tuple[Fact, ...]]:
        size = log_chars(self._window)
        facts = tuple(self._identifier("identifier") for _ in range(count))
        lines = {
            int(size * share): self._random.choice(self._printed.log_lines).format(x=fact.text)
            for share, fact in zip((0.1, 0.8), facts, strict=False)
        }
        return _log(self._random, size, lines), facts

    def _identifier(self, kind: Kind) -> Fact:
        random = self._random
        shapes = (
            f"{random.getrandbits(48):012x}",
            f"ERR_{random.randint(10_000, 99_999)}",
            f"10.{random.randint(1, 250)}.{random.randint(1, 250)}.7:{random.randint(10_000, 60_000)}",
            f"OPS-{random.randint(1_000, 9_999)}",
            f"/var/spool/{next(self._names)}/part-{random.randint(100, 999)}",
            f"cus_{random.getrandbits(40):010x}",
        )
        place = self._turn["identifier"] = self._turn.get("identifier", -1) + 1
        text = shapes[(place + self._seed) % len(shapes)]
        return Fact(kind=kind, text=text, ask=text)


def _sentence(kind: Kind, text: str, ask: str, old: str = "") -> Fact:
    """Return a sentence as a fact, without the mark at its end."""
    return Fact(kind=kind, text=text.rstrip(".。"), ask=ask, old=old)


def _plain(name: str) -> str:
    """Return a name as plain words."""
    return name.replace("_", " ")


def _named(template: str, name: str, mark: str = "w") -> str:
    """Return what a sentence is recalled by: its name, which it has as plain words where the template has `mark`."""
    return f'"{_plain(name)}"' if f"{{{mark}}}" in template else name


def _of_path(kind: Kind, path: str) -> Fact:
    return Fact(kind=kind, text=path, ask=path.rpartition("/")[2])


def _quoted(text: str) -> str:
    """Return a text for between single quotes in a shell command."""
    return text.replace("'", "'\\''")


def _paragraphs(sentences: Sequence[str]) -> str:
    """Return sentences as paragraphs of four."""
    return "\n\n".join(" ".join(sentences[start : start + 4]) for start in range(0, len(sentences), 4))


def _log(random: Random, size: int, extra: dict[int, str] | None = None) -> str:
    """Return about `size` characters of log; `extra` lines come where so many characters are before them."""
    waiting = sorted((extra or {}).items())
    lines: list[str] = []
    length = second = 0
    while length < size or waiting:
        second += random.randint(1, 50)
        text = f"batch {random.randint(100, 999)} took {random.randint(10, 900)} ms"
        if waiting and length >= waiting[0][0]:
            text = waiting.pop(0)[1]
        lines.append(f"{8 + second // 3_600:02d}:{second // 60 % 60:02d}:{second % 60:02d} worker {text}")
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


_BRACES = re.compile(r"([\w./-]*)\{([^{}\n]+)\}([\w./-]*)")


class View:
    """The texts of a request, to look for facts in. Runs of spaces count as one, `a/{b,c}.py` as both paths."""

    def __init__(self, texts: Iterable[str]) -> None:
        joined = "\n".join(texts)
        paths = (
            f"{found[1]}{part.strip()}{found[3]}" for found in _BRACES.finditer(joined) for part in found[2].split(",")
        )
        self._text = " ".join(joined.split())
        self._paths = frozenset(paths)

    def has(self, text: str) -> bool:
        """Say whether a text is there word for word."""
        return text in self._text or any(path.endswith(text) for path in self._paths)

    def is_stale(self, fact: Fact) -> bool:
        """Say whether what a fact took back is there and the fact is not."""
        return bool(fact.old) and self.has(fact.old) and not self.has(fact.text)
