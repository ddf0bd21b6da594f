"""Scripts by name, for the command line of the server, the benchmark and whoever wants a lively conversation."""

from __future__ import annotations

from collections.abc import Callable

from tests.server.any_agent import read_steps, shell_steps
from tests.server.item import Item
from tests.server.reply import Call, Reply, Script, Search
from tests.server.request import Request

GREETING = "Hello! I am a scripted model. What shall we do?"


def hello(request: Request) -> Reply:
    """Greet, whatever was said."""
    del request
    return Reply(GREETING)


def fix_tests(request: Request) -> Reply:
    """Repair `tests/fixtures/sample_repo`: run the tests, read, edit, run them again, say what was done.

    Looks at the conversation alone, so it goes on rightly after a resume or a compaction; a step that was refused or
    failed ends it with what went wrong.
    """
    turn = [item for item in request.turn if item.kind in ("call", "result")]
    results = [item for item in turn if item.kind == "result"]
    if results and results[-1].is_error and results[-1].name != "bash":
        return Reply(f"I could not go on: {results[-1].text[:200]}")
    test_run = Call("bash", {"command": "python -m pytest -q -p no:cacheprovider 2>&1 | tail -20"})
    steps = [
        Reply("Let me see what fails.", thinking="First the tests, then the code.", tool_calls=[test_run]),
        Reply(
            "Now the code.",
            tool_calls=[Call("read", {"path": "shop/price.py"}), Call("read", {"path": "tests/test_price.py"})],
        ),
        Reply(
            "`total` takes the discount off twice.",
            tool_calls=[
                Call(
                    "edit",
                    {
                        "path": "shop/price.py",
                        "old_string": "    return round(amount * (1 - discount) * (1 - discount), 2)",
                        "new_string": "    return round(amount * (1 - discount), 2)",
                    },
                )
            ],
        ),
        Reply("Once more the tests.", tool_calls=[test_run]),
    ]
    taken = _count_steps(turn)
    if taken < len(steps):
        return steps[taken]
    passed = "passed" in results[-1].text and "failed" not in results[-1].text
    if passed:
        return Reply("**Fixed.** The discount was applied twice in `shop/price.py`; all tests pass now.")
    return Reply(f"The tests still fail:\n\n```\n{results[-1].text[-400:]}\n```")


def _count_steps(turn: list[Item]) -> int:
    """Count the steps of a turn: runs of calls, however many results follow."""
    return sum(
        item.kind == "call" and (place == 0 or turn[place - 1].kind != "call") for place, item in enumerate(turn)
    )


PAGES = (
    ("What’s New In Python 3.15", "https://docs.python.org/3.15/whatsnew/3.15.html"),
    ("PEP 790 – Python 3.15 Release Schedule", "https://peps.python.org/pep-0790/"),
    ("Escapes \x1b[31mand\x07 all that", "https://example.org/\x1b]8;;evil"),
)


def search(request: Request) -> Reply:
    """Search the web, slowly, and cite what was found."""
    del request
    text = "**Python 3.15** was released in October 2026. It comes with a *frozen dictionary*."
    return Reply(text, searches=[Search("python 3.15 release date", PAGES)], delay_per_event=0.2)


def steps(count: int) -> Callable[[Request], Reply]:
    """Ask for `count` cheap tool calls, one a step, then stop."""

    def answer(request: Request) -> Reply:
        taken = _count_steps([item for item in request.turn if item.kind in ("call", "result")])
        if taken >= count:
            return Reply(f"Done after {count} steps.")
        return Reply(f"Step {taken + 1} of {count}.", tool_calls=[Call(_shell_of(request), {"command": "true"})])

    return answer


def _shell_of(request: Request) -> str:
    """Return the name of the client's shell tool: `bash` for us, `Bash` or `shell` for others."""
    return next((name for name in request.tool_names if name.lower() in ("bash", "shell")), "bash")


def reads(count: int) -> Callable[[Request], Reply]:
    """Ask for `count` reads of `README.md`, one a step, then stop."""

    def answer(request: Request) -> Reply:
        taken = _count_steps([item for item in request.turn if item.kind in ("call", "result")])
        if taken >= count:
            return Reply(f"Done after {count} reads.")
        return Reply(tool_calls=[Call("read", {"path": "README.md", "limit": 20})])

    return answer


END_MARK = "end-of-the-long-answer"
DELTA = 60
"""Characters of a delta of a long answer."""
SECTION = """## Part {number}

Some *prose* with `code`, a [link](https://example.org/{number}) and **weight**; the line goes on for a while so that
it has to be wrapped on every terminal that is narrower than this sentence is long.

- an item
- another with `inline code`
  - and one below it

| name | value | note |
|---|---:|---|
| alpha | {number} | 漢字 and emoji 🎵 |
| beta | {number}{number} | plain |

```python
def part_{number}(values: list[int]) -> int:
    \"\"\"Add up.\"\"\"
    return sum(value * {number} for value in values)
```

"""


def markdown(kilobytes: int) -> str:
    """Return Markdown of this many kilobytes (1024 bytes), with every kind of block in it."""
    parts: list[str] = ["# A long answer\n\n"]
    size, number = len(parts[0]), 0
    while size < kilobytes * 1024:
        number += 1
        parts.append(SECTION.format(number=number))
        size += len(parts[-1].encode())
    return "".join([*parts, f"{END_MARK}\n"])


def stream(kilobytes: int) -> Callable[[Request], Reply]:
    """Answer with a long Markdown text as fast as it is read."""
    # The mark comes in one piece, so that it is one piece on the screen too.
    body = markdown(kilobytes).removesuffix(f"{END_MARK}\n")
    text = f"{body.ljust(-(-len(body) // DELTA) * DELTA, chr(10))}{END_MARK}\n"

    def answer(request: Request) -> Reply:
        del request
        return Reply(text, chunk_size=DELTA)

    return answer


def trickle(seconds: int) -> Callable[[Request], Reply]:
    """Answer with Markdown at the pace of a fast model, about 100 deltas a second, for so many seconds."""
    text = markdown(seconds * 3)[: seconds * 100 * 24]

    def answer(request: Request) -> Reply:
        del request
        return Reply(text, delay_per_event=0.01, chunk_size=24)

    return answer


PACE_KILOBYTES = 10
"""Kilobytes a second of the answers that are one long block."""


def fence(kilobytes: int) -> Callable[[Request], Reply]:
    """Answer with one fence of code of this many kilobytes, 10 KB a second."""
    return _one_block(
        "```python\n", "value_{number} = compute(value, other={number})  # a comment\n", "```\n", kilobytes
    )


def bullets(kilobytes: int) -> Callable[[Request], Reply]:
    """Answer with one list of this many kilobytes, 10 KB a second."""
    return _one_block(
        "", "- item {number} with `code`, *prose* and a [link](https://example.org/{number})\n", "", kilobytes
    )


def rows(kilobytes: int) -> Callable[[Request], Reply]:
    """Answer with one table of this many kilobytes, 10 KB a second."""
    return _one_block(
        "| name | value | note |\n|---|---:|---|\n", "| row {number} | {number} | a `note` |\n", "", kilobytes
    )


def line(kilobytes: int) -> Callable[[Request], Reply]:
    """Answer with one line without a break of this many kilobytes, 10 KB a second."""
    return _one_block("", "word{number} and *more* ", "\n", kilobytes)


def _one_block(head: str, piece: str, foot: str, kilobytes: int) -> Callable[[Request], Reply]:
    parts, size, number = [head], 0, 0
    while size < kilobytes * 1024:
        number += 1
        parts.append(piece.format(number=number))
        size += len(parts[-1])
    text = "".join([*parts, foot, f"\n{END_MARK}\n"])

    def answer(request: Request) -> Reply:
        del request
        return Reply(text, delay_per_event=0.01, chunk_size=PACE_KILOBYTES * 1024 // 100)

    return answer


def slow(request: Request) -> Reply:
    """Answer with about a hundred words, one every 50 ms, so that there is time to type, queue and interrupt."""
    del request
    words = " ".join(f"word{number}" for number in range(100))
    return Reply(words, delay=0.3, delay_per_event=0.05, chunk_size=8)


def script(name: str) -> Script:
    """Return the script of this name: `hello`, `fix_tests`, `steps:N`, `reads:N`, `stream:KB`,
    `trickle:SECONDS`, `slow`, `search`, one long block each: `fence:KB`, `bullets:KB`, `rows:KB`, `line:KB`, and what
    any agent understands: `any_read:N`, `any_shell:N`.

    Raises `ValueError` for another name.
    """
    base, _, size = name.partition(":")
    plain: dict[str, Callable[[Request], Reply]] = {
        "hello": hello,
        "fix_tests": fix_tests,
        "slow": slow,
        "search": search,
    }
    sized = {"steps": steps, "reads": reads, "stream": stream, "trickle": trickle}
    sized |= {"fence": fence, "bullets": bullets, "rows": rows, "line": line}
    sized |= {"any_read": read_steps, "any_shell": shell_steps}
    if base in plain and not size:
        return plain[base]
    if base in sized and size.isdigit():
        return sized[base](int(size))
    raise ValueError(f"no script {name!r}; there are {', '.join([*plain, *(f'{key}:N' for key in sized)])}")
