"""The offline model's mind: a conversation in, an answer with text and tool calls out. Pure and deterministic.

The newest request of the user is parsed into wishes (`offline_requests.py`); each wish asks for one call after the
other until it has what it needs, then reports. What was done already is read from the results in the conversation, so
nothing is kept between two calls of the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tenuto.model import offline_reports as reports
from tenuto.model.offline_conversation import command_of, given_file, last_failure, request_place, todo_items
from tenuto.model.offline_requests import parse
from tenuto.model.offline_wishes import (
    AddTodo,
    Create,
    Explain,
    FindFiles,
    FinishTodo,
    Greet,
    Help,
    Look,
    Read,
    Replace,
    Run,
    RunTests,
    Search,
    ShowTodo,
    Thanks,
    Unknown,
    Wish,
)
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import Message, ToolResultMessage, UserMessage
from tenuto.protocol.part import text_of

_LISTED = 500


class Action(msgspec.Struct, frozen=True):
    """A tool call to make."""

    name: str
    arguments: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """What the model says, and the calls that it asks for."""

    text: str
    actions: tuple[Action, ...] = ()


Results = Sequence[ToolResultMessage]

WHAT_WORKS = """\
- **look around**, `list files in src`
- **read** `README.md`, `read src/app.py lines 10-40`
- **search** `parse_config in src`, `find *.toml`, `where is Session defined?`
- **run** `git status`, **run the tests**, and `why did it fail?`
- **replace** `"old text" with "new text" in src/app.py` (`replace all …` for every place)
- **create file** `notes.txt with some text`
- **todo:** `first; second`, `mark 1 done`, `todo`
- several in a row: `read a.py, then run the tests`"""

HOW_TO_CONNECT = """\
To connect a real model, set one of these and start again (or choose with `/model`):

- `ANTHROPIC_API_KEY` for Claude: `tenuto --model anthropic/NAME`
- `OPENAI_API_KEY` for OpenAI: `tenuto --model openai/NAME`
- a local server (Ollama, LM Studio, llama.cpp, vLLM …): `OPENAI_BASE_URL=http://localhost:11434/v1` and \
`tenuto --model openai-chat/NAME`"""

WHO = "I am Tenuto's offline model: a small set of rules, not a language model. I need no key and no network."


def answer(messages: Sequence[Message]) -> Answer:
    """Return the answer to a conversation; the last message is a user's, a tool's or a developer's."""
    start = request_place(messages)
    if start < 0:
        return Answer(f"{WHO} There is no request yet.")
    request = messages[start]
    assert isinstance(request, UserMessage)
    wishes = parse(text_of(request.parts))
    results = [message for message in messages[start:] if _counts(message)]
    return _pursue(wishes, results, messages)  # pyright: ignore[reportArgumentType]


def _counts(message: Message) -> bool:
    """Interrupted calls are made again when the user says go on."""
    return isinstance(message, ToolResultMessage) and not message.interrupted


def _pursue(wishes: Sequence[Wish], results: Results, messages: Sequence[Message]) -> Answer:
    """Make the next call of the first wish that is not done; when all are, report on each."""
    said: list[str] = []
    left = list(results)
    for place, wish in enumerate(wishes):
        used, step = _advance(wish, left, messages)
        left = left[used:]
        if isinstance(step, Action):
            return Answer(_announce(step), (step,))
        said.append(step.text)
        if step.failed and place + 1 < len(wishes):
            said.append("I stopped there and did not do the rest.")
            break
    return Answer("\n\n".join(said))


class _Report(msgspec.Struct, frozen=True):
    """A wish's end."""

    text: str
    failed: bool = False


def _advance(wish: Wish, results: Results, messages: Sequence[Message]) -> tuple[int, Action | _Report]:
    """Return how many results this wish has used, and its next call or its report."""
    plan = _PLANS[type(wish)]
    used = 0
    while True:
        step = plan(wish, results[:used], messages)
        if isinstance(step, _Report) or used == len(results):
            return used, step
        used += 1
        result = results[used - 1]
        if result.denied or (result.is_error and result.name != "bash"):
            return used, _Report(_refused(step, result), failed=True)


_VERBS = {"bash": "run", "grep": "search for", "glob": "list", "todo": "write the list"}


def _refused(action: Action, result: ToolResultMessage) -> str:
    """Say that a call was refused or failed, with the tool's own reason."""
    lines = reports.content_lines(result) or ["(no reason given)"]
    subject = next((value for value in action.arguments.values() if isinstance(value, str) and value), "")
    hint = ""
    if action.name == "edit" and re.search(r"more than once|occurs|matches|multiple|times", lines[0]):
        hint = "\n\nSay `replace all … by … in …` to change every place, or give more of the text around it."
    doing = _VERBS.get(action.name, action.name)
    return f"I could not {doing} {reports.coded(subject)}:\n\n{reports.fenced(lines[:6])}{hint}"


def _announce(action: Action) -> str:
    arguments = action.arguments
    match action.name:
        case "bash":
            return f"Running {reports.coded(arguments['command'])}."
        case "grep":
            return f"Searching for {reports.coded(arguments['pattern'])}."
        case "glob":
            return "Looking at the files."
        case "todo":
            return "Writing the list."
        case "write":
            return f"Writing {reports.coded(arguments['path'])}."
        case "edit":
            return f"Changing {reports.coded(arguments['path'])}."
        case _:
            return f"Reading {reports.coded(arguments['path'])}."


# --- plans: the next call, or the report ---


def _plan_greet(_wish: Greet, _results: Results, _messages: Sequence[Message]) -> _Report:
    return _Report(f"Hello! {WHO} I can still drive the real tools. Ask me to:\n\n{WHAT_WORKS}\n\n{HOW_TO_CONNECT}")


def _plan_help(_wish: Help, _results: Results, _messages: Sequence[Message]) -> _Report:
    return _Report(f"{WHO} I understand:\n\n{WHAT_WORKS}\n\n{HOW_TO_CONNECT}")


def _plan_thanks(_wish: Thanks, _results: Results, _messages: Sequence[Message]) -> _Report:
    return _Report("You are welcome.")


def _plan_unknown(wish: Unknown, _results: Results, _messages: Sequence[Message]) -> _Report:
    quoted = reports.coded(wish.text) if wish.text.strip() else "that"
    return _Report(
        f"I do not understand {quoted}. {WHO} What works:\n\n{WHAT_WORKS}\n\n{HOW_TO_CONNECT}",
        failed=True,
    )


def _plan_look(wish: Look, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("glob", {"pattern": "**/*", "path": wish.path or ".", "limit": _LISTED})
    base = f"{wish.path.rstrip('/')}/" if wish.path else ""
    paths = [path.removeprefix(base) for path in _paths_in(results[0])]
    where = reports.coded(wish.path) if wish.path else "the working directory"
    if not paths:
        return _Report(f"There are no files in {where}.")
    readme = next((path for path in sorted(paths) if re.fullmatch(r"readme(?:\.\w+)?", path, re.IGNORECASE)), "")
    if readme and len(results) == 1:
        return Action("read", {"path": base + readme, "limit": 40})
    said = reports.report_files(where, paths, cut=results[0].truncated)
    if len(results) > 1:
        said += f"\n\n{reports.report_file(base + readme, results[1])}"
    return _Report(said)


def _paths_in(listing: ToolResultMessage) -> list[str]:
    """Return the paths that `glob` found."""
    return [line.strip() for line in reports.content_lines(listing) if line != "No files match."]


def _plan_read(wish: Read, results: Results, messages: Sequence[Message]) -> Action | _Report:
    given = results[0] if results else given_file(wish, messages)
    if given is not None:
        return _Report(reports.report_file(wish.path, given))
    arguments: dict[str, Any] = {"path": wish.path}
    if wish.first:
        arguments |= {"offset": wish.first, "limit": max(1, (wish.last or wish.first) - wish.first + 1)}
    return Action("read", arguments)


def _plan_search(wish: Search, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if results:
        return _Report(reports.report_matches(wish.pattern, wish.path, results[0]))
    arguments: dict[str, Any] = {"pattern": wish.pattern, "path": wish.path or "."}
    return Action("grep", arguments if wish.regular else arguments | {"literal": True})


def _plan_find_files(wish: FindFiles, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("glob", {"pattern": wish.pattern, "path": wish.path or "."})
    return _Report(reports.report_names(wish.pattern, _paths_in(results[0]), cut=results[0].truncated))


def _plan_run(wish: Run, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("bash", {"command": wish.command})
    return _Report(reports.report_command(wish.command, results[0]), failed=reports.has_failed(results[0]))


_TEST_COMMANDS = (
    (r"(?:pytest\.ini|pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|conftest\.py|test_.+\.py)", "python -m pytest -q"),
    (r"package\.json", "npm test --silent"),
    (r"Cargo\.toml", "cargo test --quiet"),
    (r"go\.mod", "go test ./..."),
    (r"Makefile", "make test"),
)
_TEST_FILES = (
    "{pytest.ini,pyproject.toml,setup.py,setup.cfg,tox.ini,conftest.py,test_*.py,"
    "package.json,Cargo.toml,go.mod,Makefile}"
)


def _plan_run_tests(_wish: RunTests, results: Results, messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("glob", {"pattern": _TEST_FILES, "path": "."})
    names = [path.rsplit("/", 1)[-1] for path in _paths_in(results[0])]
    for pattern, command in _TEST_COMMANDS:
        if any(re.fullmatch(pattern, name) for name in names):
            return _plan_run(Run(command), results[1:], messages)
    return _Report("I do not see how tests are run here. Say `run COMMAND` with the command.", failed=True)


def _plan_replace(wish: Replace, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("read", {"path": wish.path})
    if len(results) == 1:
        arguments: dict[str, Any] = {"path": wish.path, "old_string": wish.old, "new_string": wish.new}
        return Action("edit", arguments | ({"replace_all": True} if wish.everywhere else {}))
    return _Report(f"Done: in {reports.coded(wish.path)}, {reports.coded(wish.old)} is now {reports.coded(wish.new)}.")


def _plan_create(wish: Create, results: Results, _messages: Sequence[Message]) -> Action | _Report:
    if not results:
        return Action("write", {"path": wish.path, "content": wish.text})
    lines = reports.plural(len(wish.text.splitlines()), "line")
    return _Report(f"Wrote {reports.coded(wish.path)} ({lines}).")


def _plan_explain(_wish: Explain, _results: Results, messages: Sequence[Message]) -> _Report:
    failed = last_failure(messages)
    if failed is None:
        return _Report("Nothing has failed in what I can see of this session.")
    return _Report(reports.explain_failure(command_of(failed, messages), failed))


# --- the todo list ---


def _todo_action(items: Sequence[TodoItem]) -> Action:
    return Action("todo", {"items": [{"text": item.text, "status": item.status} for item in items]})


def _todo_report(items: Sequence[TodoItem]) -> _Report:
    if not items:
        return _Report("The todo list is empty. Say `todo: first; second` to fill it.")
    signs = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]", "cancelled": "[-]"}
    lines = [f"{number}. {signs[item.status]} {item.text}" for number, item in enumerate(items, 1)]
    left = sum(item.status in ("pending", "in_progress") for item in items)
    return _Report("\n".join([*lines, "", "All done." if not left else f"{left} to do."]))


def _plan_show_todo(_wish: ShowTodo, _results: Results, messages: Sequence[Message]) -> _Report:
    return _todo_report(todo_items(messages))


def _plan_add_todo(wish: AddTodo, results: Results, messages: Sequence[Message]) -> Action | _Report:
    items = todo_items(messages)
    if results:
        return _todo_report(items)
    return _todo_action([*items, *(TodoItem(text=text) for text in wish.texts)])


def _plan_finish_todo(wish: FinishTodo, results: Results, messages: Sequence[Message]) -> Action | _Report:
    items = todo_items(messages)
    if results:
        return _todo_report(items)
    chosen = {place for place, item in enumerate(items) if any(_is_meant(which, place, item) for which in wish.which)}
    if not chosen:
        return _Report("There is no such line on the todo list.", failed=True)
    return _todo_action(
        [msgspec.structs.replace(item, status="done") if place in chosen else item for place, item in enumerate(items)]
    )


def _is_meant(which: int | str, place: int, item: TodoItem) -> bool:
    if isinstance(which, int):
        return which in (0, place + 1)
    return which.lower() in item.text.lower()


_PLANS: dict[type, Callable[[Any, Results, Sequence[Message]], Action | _Report]] = {
    Greet: _plan_greet,
    Help: _plan_help,
    Thanks: _plan_thanks,
    Unknown: _plan_unknown,
    Look: _plan_look,
    Read: _plan_read,
    Search: _plan_search,
    FindFiles: _plan_find_files,
    Run: _plan_run,
    RunTests: _plan_run_tests,
    Replace: _plan_replace,
    Create: _plan_create,
    Explain: _plan_explain,
    ShowTodo: _plan_show_todo,
    AddTodo: _plan_add_todo,
    FinishTodo: _plan_finish_todo,
}
