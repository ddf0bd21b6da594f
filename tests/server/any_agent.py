"""Tool calls that any agent understands: its own tool for reading or for commands, filled in by that tool's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.server.item import Refusal
from tests.server.reply import Call, Reply
from tests.server.request import Request

SHELLS = ("bash", "shell", "exec_command", "shell_command", "run_shell_command", "execute_command")
READERS = ("read", "read_file", "readfile")
PATHS = ("path", "file_path", "filepath", "file")
COMMANDS = ("command", "cmd")
NOTES = 500
"""Files that `note_name` has names for, before it begins anew."""


def note_name(number: int) -> str:
    """Return the path of a small file of the project that is read in this step."""
    return f"notes/note-{number % NOTES}.md"


def note_text(number: int) -> str:
    """Return what stands in it: twenty short lines, its mark first."""
    return "".join([f"{mark(number)}\n", *(f"line {line} of the note\n" for line in range(19))])


def mark(number: int) -> str:
    """Return what is in the result of a step that was done."""
    return f"mark-{number % NOTES}-."


def done_mark(count: int) -> str:
    """Return the last answer after so many steps: one word, which no screen takes apart."""
    return f"Done-after-{count}-steps."


def read_steps(count: int) -> Callable[[Request], Reply]:
    """Ask for so many reads, one a step and never the same file twice running, by a command where no tool reads."""

    def call(request: Request, number: int) -> Call:
        tool = find_tool(request, READERS)
        if tool is None:
            return _command(request, f"cat {note_name(number)}")
        return Call(tool[0], arguments_of(tool[1], note_name(number), f"cat {note_name(number)}"))

    return _steps(count, call)


def shell_steps(count: int) -> Callable[[Request], Reply]:
    """Ask for so many commands that do nothing but print a mark, one a step."""
    return _steps(count, lambda request, number: _command(request, f"echo {mark(number)}"))


def _steps(count: int, call: Callable[[Request, int], Call]) -> Callable[[Request], Reply]:
    """Ask for `count` calls, then stop. Requests without tools (titles, summaries) get a word and do not count.

    Steps are counted by the requests, not by the conversation: agents put words of their own between the results.
    """
    taken = 0

    def answer(request: Request) -> Reply:
        nonlocal taken
        if not request.tool_names:
            return Reply("A title")
        if taken in (1, count):
            _check_result(request, taken - 1)
        if taken >= count:
            return Reply(done_mark(count))
        taken += 1
        return Reply(tool_calls=[call(request, taken - 1)])

    return answer


def _check_result(request: Request, number: int) -> None:
    """Refuse to go on where the tool did not do what was asked: the figures would mean nothing."""
    results = [item.text for item in request.items if item.kind == "result"]
    if not results or mark(number) not in results[-1]:
        said = results[-1][:300] if results else "no result came"
        raise Refusal(f"the call of step {number + 1} was not done: {said}")


def _command(request: Request, command: str) -> Call:
    tool = find_tool(request, SHELLS)
    if tool is None:
        raise Refusal(f"no tool for commands among {', '.join(request.tool_names)}")
    return Call(tool[0], arguments_of(tool[1], note_name(0), command))


def find_tool(request: Request, names: tuple[str, ...]) -> tuple[str, dict[str, Any]] | None:
    """Return the first tool of one of these names, in any case, with its JSON schema."""
    offered: dict[str, tuple[str, dict[str, Any]]] = {}
    for tool in request.body.get("tools") or []:
        function = tool.get("function", tool)
        schema = function.get("parameters") or function.get("input_schema") or {}
        offered[function.get("name", "").lower()] = function.get("name", ""), schema
    return next((offered[name] for name in names if name in offered), None)


def arguments_of(schema: dict[str, Any], path: str, command: str) -> dict[str, Any]:
    """Return what a tool requires, and the path or command where it knows one; the rest is as plain as can be."""
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    found: dict[str, Any] = {}
    for name, kind in properties.items():
        if name.lower() in PATHS:
            found[name] = path
        elif name.lower() in COMMANDS:
            found[name] = ["bash", "-c", command] if kind.get("type") == "array" else command
        elif name in required:
            found[name] = _plain(kind)
    return found


def _plain(kind: dict[str, Any]) -> Any:
    if "enum" in kind:
        return kind["enum"][0]
    match kind.get("type"):
        case "boolean":
            return False
        case "integer" | "number":
            return kind.get("minimum", 1)
        case "array":
            return []
        case "object":
            return {}
        case _:
            return "a step"
