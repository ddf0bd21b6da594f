"""What a command file sends: its text with the arguments put in, and the output of the commands in it.

`$ARGUMENTS` and `$@` are everything behind the name, `$1` to `$9` its words, `$ARGUMENTS[0]` the first one, `${@:2}`
the second and later ones, `$NAME` what `NAME=value` says. What is put in is never looked at again. A command between
`!` and back-ticks runs before the prompt is sent, judged by the guard like any command of the model.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Sequence

import msgspec

from tenuto.config.commands import SHELL, CommandFile
from tenuto.core.agent.calls import CallRunner
from tenuto.core.state.live import LiveSession
from tenuto.core.state.terms import rules_of
from tenuto.guard.foreign import PROMPT_TAG
from tenuto.guard.rules import Rule
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Terms
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.bounding import shorten
from tenuto.text.writable import keep_within
from tenuto.tool.output import StepBudget
from tenuto.tool.run.runner import prepare

MAX_SHELL = 20
"""Commands in one file that are run."""
SHELL_SECONDS = 60
"""So long each of them may take."""
KIND = "command"
"""The kind of the notice that names them."""
OUTPUT = "command-output"
"""The tag around an output of several lines."""
_ROOM_SHARE = 2
_SHOWN_CHARS = 80
_PLACE = re.compile(
    r"\$ARGUMENTS\[(?P<index>\d{1,3})\]|\$(?P<all>ARGUMENTS\b|@)|\$\{(?P<braced>ARGUMENTS|@)\}"
    r"|\$\{@:(?P<first>\d{1,3})(?::(?P<count>\d{1,3}))?\}|\$(?P<word>[1-9])(?!\d)|\$(?P<name>[A-Z][A-Z0-9_]*)"
)
_NAMED = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w./:@%+,=-]*")
_STRANGE = re.compile(rf"<({OUTPUT}|{PROMPT_TAG})[ >].*?</\1>", re.DOTALL)


class NotAllowedError(Exception):
    """The user did not allow a command of the file: nothing is sent."""


class Arguments(msgspec.Struct, frozen=True):
    """What the user typed behind the name: as it is, in words, and what is named.

    `keeps_numbers`: nothing was typed, and the file names no arguments, so its `$1` may be that of an awk program.
    """

    text: str
    words: tuple[str, ...]
    named: dict[str, str]
    keeps_numbers: bool = False

    @classmethod
    def read(cls, text: str, hint: str = "…") -> Arguments:
        """Return it in words as a shell has them; where a quote is open, at each space. `hint` is the file's."""
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        found = [match for word in words if (match := _NAMED.fullmatch(word))]
        keeps_numbers = not words and not hint
        return cls(text, tuple(words), {match[1]: match[2] for match in found}, keeps_numbers)


def fill_in(text: str, arguments: Arguments) -> str:
    """Return a text with the arguments in their places; what is missing is empty, an unknown `$NAME` stays. Pure."""

    def value(place: re.Match[str]) -> str:
        words = arguments.words
        if place["index"] is not None:
            return "".join(words[int(place["index"]) :][:1])
        if place["word"] is not None:
            return place[0] if arguments.keeps_numbers else "".join(words[int(place["word"]) - 1 :][:1])
        if place["first"] is not None:
            chosen = words[max(0, int(place["first"]) - 1) :]
            return " ".join(chosen[: int(place["count"])] if place["count"] else chosen)
        if place["name"] is not None:
            return arguments.named.get(place["name"], place[0])
        return arguments.text

    return _PLACE.sub(value, text)


def takes_arguments(text: str) -> bool:
    """Say whether a text has a place for arguments that need no name."""
    return any(place["name"] is None for place in _PLACE.finditer(text))


def shell_text(command: str, arguments: Arguments) -> str:
    """Return a command of the file with the arguments. Words that a shell could obey are handed over as its own."""
    if not any(place["name"] is None or place["name"] in arguments.named for place in _PLACE.finditer(command)):
        return command
    if all(_PLAIN.fullmatch(word) for word in arguments.words):
        return fill_in(command, arguments)
    command = _PLACE.sub(lambda place: _as_shell(place, arguments), command)
    names = "".join(f"{name}={shlex.quote(value)}; " for name, value in arguments.named.items())
    return f"set -- {shlex.join(arguments.words)}; ARGUMENTS={shlex.quote(arguments.text)}; {names}{command}"


def _as_shell(place: re.Match[str], arguments: Arguments) -> str:
    """Return what a shell calls such a place: everything else it knows by itself."""
    if place["index"] is not None:
        return f"${{{int(place['index']) + 1}}}"
    return place[0]


def own_words(text: str) -> str:
    """Return a text without outputs and prompts of servers in it: what they mention is nobody's wish."""
    return _STRANGE.sub("", text)


async def expand(live: LiveSession, file: CommandFile, argument: str, terms: Terms | None = None) -> str:
    """Return the prompt: `/name argument`, then the text. Raises `NotAllowedError` when the user says no to a command.

    A command that may not run, because of the mode or because nobody can be asked, leaves a line that says so. What
    `terms` allow holds for the commands of the file too.
    """
    arguments = Arguments.read(argument, file.argument_hint)
    commands = [shell_text(match[1].strip(), arguments) for match in SHELL.finditer(file.body)]
    outputs = iter(await _run_all(live, file, commands, rules_of(terms)))
    parts: list[str] = []
    end = 0
    for match in SHELL.finditer(file.body):
        parts += (fill_in(file.body[end : match.start()], arguments), next(outputs))
        end = match.end()
    parts.append(fill_in(file.body[end:], arguments))
    rest = f"\n\nArguments: {argument}" if argument and not takes_arguments(file.body) else ""
    return f"{f'/{file.name} {argument}'.strip()}\n\n{''.join(parts)}{rest}"


async def _run_all(live: LiveSession, file: CommandFile, commands: Sequence[str], lent: Sequence[Rule]) -> list[str]:
    """Return what stands in the place of each command."""
    if not commands:
        return []
    budget, size = live.budget(), live.measure()
    window = budget.window // _ROOM_SHARE
    room = min(window / 2, max(0, budget.trigger - size.tokens) // _ROOM_SHARE)
    bounds = StepBudget(window=window, room=room, calls=min(len(commands), MAX_SHELL), calibration=size.calibration)
    shown: list[str] = []
    for number, command in enumerate(commands):
        if number >= MAX_SHELL:
            shown.append(f"(not run: a file may have {MAX_SHELL} commands)")
            continue
        result = await _run(live, command, lent)
        shown.append(
            result if isinstance(result, str) else _shown(command, bounds.bound(result, live.tool_context.store_output))
        )
    names = ", ".join(f"`{shorten(sanitize_line(command), _SHOWN_CHARS)}`" for command in commands[:MAX_SHELL])
    live.notify(f"/{file.name} ran {names}", kind=KIND, keep=live.session.reading.system is not None)
    return shown


async def _run(live: LiveSession, command: str, lent: Sequence[Rule]) -> ToolResultMessage | str:
    """Return the result of a command, or why it was not run. Raises `NotAllowedError`."""
    arguments = json.dumps({"command": command, "timeout": SHELL_SECONDS})
    call = ToolCallPart(id=f"command-{uuid.uuid4().hex[:12]}", name="bash", arguments=arguments)
    prepared = await prepare(call, live.tools, live.tool_context)
    if isinstance(prepared, ToolResultMessage):
        return f"(not run: {sanitize_line(text_of(prepared.parts))})"
    result = await CallRunner(live, "", lent).run_for_prompt(prepared)
    if not result.denied:
        return result
    if live.can_ask and live.mode != "plan":
        raise NotAllowedError(f"`{command}` was not allowed, so nothing is sent")
    return f"(not run: {sanitize_line(text_of(result.parts))})"


def _shown(command: str, result: ToolResultMessage) -> str:
    """Return an output as it stands in the prompt: one line as it is, several between tags."""
    text = text_of(result.parts).rstrip("\n")
    if not result.is_error:
        body, _, ending = text.rpartition("\n")
        text = body if ending.startswith("[Exit code 0") else text
    if "\n" not in text and "@" not in text:
        return text
    name = shorten(sanitize_line(command), _SHOWN_CHARS).replace('"', "'")
    return f'\n<{OUTPUT} command="{name}">\n{keep_within(text, OUTPUT, "harness-note")}\n</{OUTPUT}>\n'
