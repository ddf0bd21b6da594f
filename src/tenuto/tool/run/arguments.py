"""The arguments of the built-in tools as pydantic models.

Imported at the first tool call only: the schemas that the model sees are prebuilt (`schemas.json`), and a test proves
them equal to these models. After a change here run `python -m tenuto.tool.run.arguments`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
from pathlib import Path
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tenuto.protocol.entry import TodoStatus
from tenuto.text.bounding import shorten

_ECHO_CHARS = 200
_MAX_PROBLEMS = 8


class Arguments(BaseModel):
    """Base of all: what a model adds of its own is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ReadArguments(Arguments):
    """Read a file (numbered lines; of a PDF or notebook its text), an image, or list a directory. Read on in a long
    file with offset.
    """

    path: str
    offset: int = Field(default=1, ge=1, description="First line")
    limit: int | None = Field(default=None, ge=1, description="Number of lines; default as many as fit")


class WriteArguments(Arguments):
    """Create a file or replace all of it; folders are made. An existing file must have been read before."""

    path: str
    content: str
    append: bool = Field(default=False, description="Add content to the end instead: for long files in parts")


class ReplacementArguments(Arguments):
    """One text and what stands in its place."""

    old_string: str
    new_string: str
    replace_all: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, value: object) -> object:
        """Models know its parts by other names as well."""
        return _with_our_names(cls, cast("dict[str, Any]", value)) if isinstance(value, dict) else value


class EditArguments(Arguments):
    """Replace text in a file. old_string must be copied exactly from the file, without line numbers, with enough
    lines around it to occur only once. Everything else in the file stays as it is, line endings included.
    """

    path: str
    old_string: str | None = None
    new_string: str | None = Field(default=None, description="Replacement; empty deletes")
    replace_all: bool | None = Field(default=None, description="Replace every occurrence")
    edits: list[ReplacementArguments] | None = Field(
        default=None, description="Several replacements instead, in order, all or none"
    )

    @field_validator("edits", mode="before")
    @classmethod
    def _list_as_text(cls, value: object) -> object:
        """Some models write the list as a JSON text."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(value)
        return value

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        """One replacement or a list of them. A blank that a model filled in beside a list is nothing given."""
        if self.edits and (self.old_string or self.new_string):
            raise ValueError("old_string and new_string, or edits: give one of the two, not both")
        if self.edits and self.replace_all:
            raise ValueError("replace_all: with edits, set it in those that need it")
        missing = [name for name in ("old_string", "new_string") if getattr(self, name) is None]
        if not self.edits and len(missing) == 1:
            raise ValueError(f"{missing[0]}: required and missing")
        if not self.edits and missing:
            raise ValueError("old_string and new_string, or edits: required and missing")
        return self

    @property
    def replacements(self) -> tuple[ReplacementArguments, ...]:
        """What to replace, in order; at least one."""
        if self.edits:
            return tuple(self.edits)
        old, new = self.old_string or "", self.new_string or ""
        return (ReplacementArguments(old_string=old, new_string=new, replace_all=self.replace_all),)


class PatchArguments(Arguments):
    """Change files by a patch: add, update, move and delete, several files at once, all or nothing. Lines of an update
    that are not changed must be copied exactly; three before and after a change are enough, and @@ with a line above
    where these occur twice.
    """

    input: str = Field(
        description="*** Begin Patch, then for each file *** Add File: path (each line with +), *** Delete File: path, "
        "or *** Update File: path (may be followed by *** Move to: path) with hunks: @@, then lines with a space "
        "(unchanged), - (goes) or + (comes); at last *** End Patch"
    )


PATCH_GRAMMAR = """\
start: "*** Begin Patch" LF section+ "*** End Patch" LF?
section: add | delete | update
add: "*** Add File: " path LF ("+" text? LF)+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF ("*** Move to: " path LF)? (anchor | line)* ("*** End of File" LF)?
anchor: ("@@" | "@@ " path) LF
line: ("+" | "-" | " ") text? LF
path: /.+/
text: /.+/
%import common.LF
"""
"""What `text/patch.py` reads, for servers that hold a model to it."""


class BashArguments(Arguments):
    """Run a bash command. Each starts in the working directory, without a terminal or stdin: nothing can ask or page.
    Output and exit code come back. Use background for servers, watchers and long builds: it returns at once, and you
    are told when the job ends.
    """

    command: str
    timeout: float | None = Field(default=None, gt=0, description="Seconds; default 120, at most 600")
    background: bool = False
    stdin: Literal["none", "pipe", "tty"] = Field(default="none", description="Background only: what jobs types into")
    outside: str = Field(default="", description="Once the sandbox blocked it: why it must leave it")


class JobsArguments(Arguments):
    """Background jobs: list them; wait for one; read what it wrote since; write into its stdin (text as typed, empty
    closes it); stop it.
    """

    action: Literal["list", "wait", "output", "write", "stop"] = "list"
    job: str = Field(default="", description="As job-1; empty: the only one")
    seconds: float = Field(default=60, gt=0, le=600, description="Longest wait")
    text: str = ""


class GrepArguments(Arguments):
    """Search file contents with a regular expression, honouring .gitignore."""

    pattern: str
    path: str = Field(default=".", description="File or directory")
    glob: str = Field(default="", description="Only files like this: *.py, src/**/*.{ts,tsx}")
    output: Literal["lines", "files", "count"] = Field(default="lines", description="Matching lines, paths, or counts")
    context: int = Field(default=0, ge=0, le=50, description="Lines around each match")
    ignore_case: bool = False
    literal: bool = Field(default=False, description="pattern is plain text")
    limit: int = Field(default=200, ge=1, le=5000, description="Most lines or files returned")


class GlobArguments(Arguments):
    """Find files by name, newest first, honouring .gitignore."""

    pattern: str = Field(description="*.py at any depth, or src/**/*.{ts,tsx}")
    path: str = Field(default=".", description="Directory to search")
    limit: int = Field(default=100, ge=1, le=5000)


_TODO_WORDS: dict[str, TodoStatus] = {
    **dict.fromkeys(("completed", "complete", "finished", "closed", "success"), "done"),
    **dict.fromkeys(("in progress", "active", "doing", "current", "running", "started", "ongoing"), "in_progress"),
    **dict.fromkeys(("todo", "to do", "open", "not started", "planned", "queued", "blocked"), "pending"),
    **dict.fromkeys(("canceled", "skipped", "dropped", "abandoned"), "cancelled"),
}
"""What models call the states of an item in other harnesses."""
_TODO_TEXTS = ("content", "title", "task", "step", "description", "subject", "activeForm")


class TodoItemArguments(Arguments):
    """One line of the list."""

    text: str = Field(min_length=1)
    status: TodoStatus = "pending"

    @field_validator("status", mode="before")
    @classmethod
    def _other_words(cls, value: object) -> object:
        """Models know other lists with other words for the same."""
        words = " ".join(str(value).lower().replace("-", " ").replace("_", " ").split())
        return _TODO_WORDS.get(words, words.replace(" ", "_"))

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, value: object) -> object:
        """The same for the name of its text; a bare text is an item that is not begun."""
        if isinstance(value, str):
            return {"text": value}
        if not isinstance(value, dict) or "text" in value:
            return cast("object", value)
        item = cast("dict[str, object]", value)
        name = next((name for name in _TODO_TEXTS if item.get(name)), None)
        return {**item, "text": item[name]} if name else item


class TodoArguments(Arguments):
    """Replace the todo list that the user sees. Send the whole list each time; keep one item in_progress."""

    items: list[TodoItemArguments]


class FetchArguments(Arguments):
    """Get a web page or file over http(s) as readable text. Redirects to another host are reported, not followed."""

    url: str
    raw: bool = Field(default=False, description="HTML as it is, not as text")


class CompactArguments(Arguments):
    """Ask for a compaction at a good moment. focus: what the summary must keep."""

    focus: str | None = None


class SkillArguments(Arguments):
    """Load a skill of the system prompt's list by its name: instructions for that kind of work."""

    name: str


class RecallArguments(Arguments):
    """Look into this session's whole history, word for word, also where only a summary of it is left."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    query: str = Field(default="", description="Words that an entry has all of; empty with seq: show the entries")
    regex: bool = Field(default=False, description="query is a regular expression for one line")
    seq: str = Field(default="", description="Entry or range: 120, 120-140, 120-, -140; of a sub-agent ID/120")
    branches: bool = Field(default=False, description="Also branches that were left")
    scope: Literal["session", "project"] = Field(
        default="session", description="project: earlier sessions here; seq is SESSION/120"
    )
    limit: int = Field(default=20, ge=1, le=100)


class AgentArguments(Arguments):
    """Have a sub-agent, new to this conversation, do a task. Several in one answer run side by side."""

    prompt: str = Field(description="The task, and what to report")
    agent: str = Field(default="general", description="Or explore (reads only), or as noted")
    description: str | None = None


MODELS: dict[str, type[Arguments]] = {
    "read": ReadArguments,
    "write": WriteArguments,
    "edit": EditArguments,
    "apply_patch": PatchArguments,
    "bash": BashArguments,
    "grep": GrepArguments,
    "glob": GlobArguments,
    "todo": TodoArguments,
    "fetch": FetchArguments,
    "jobs": JobsArguments,
    "recall": RecallArguments,
    "compact": CompactArguments,
    "skill": SkillArguments,
    "agent": AgentArguments,
}
GRAMMARS = {"apply_patch": PATCH_GRAMMAR}
"""Tools that take a text of this form where the server knows such tools."""
_ALIASES = {
    "file_path": "path",
    "filename": "path",
    "old_str": "old_string",
    "new_str": "new_string",
    "oldText": "old_string",
    "newText": "new_string",
    "file_text": "content",
    "cmd": "command",
    "run_in_background": "background",
    "todos": "items",
    "patch": "input",
    "skill": "name",
    "subagent_type": "agent",
    "agent_type": "agent",
    "task": "prompt",
}
"""Names that models know from other harnesses; taken for ours where ours is missing."""


def parse_arguments(name: str, values: dict[str, Any]) -> Arguments:
    """Return the arguments of the built-in tool `name`. Raises `ValueError` with every fault named."""
    model = MODELS[name]
    try:
        return model.model_validate(_with_our_names(model, values))
    except ValidationError as error:
        raise ValueError(_explain(name, error)) from None


def _with_our_names(model: type[Arguments], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that are given, those with a name of another harness under ours."""
    given = {key: value for key, value in values.items() if value is not None}
    for alias, ours in _ALIASES.items():
        if alias in given and ours in model.model_fields and ours not in given:
            given[ours] = given.pop(alias)
    return given


def _explain(name: str, error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    lines: list[str] = []
    for problem in problems[:_MAX_PROBLEMS]:
        place = ".".join(str(step) for step in problem["loc"]) or "arguments"
        if problem["type"] == "missing":
            lines.append(f"- {place}: required and missing")
        elif not problem["loc"]:  # a fault of several together, whose text names them
            lines.append(f"- {problem['msg'].removeprefix('Value error, ')}")
        else:
            echo = shorten(repr(problem["input"]), _ECHO_CHARS)
            lines.append(f"- {place}: {problem['msg']} (got {echo})")
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - _MAX_PROBLEMS} more")
    return "\n".join([f"The arguments do not fit the schema of {name}; nothing was run.", *lines])


SCHEMA_FILE = Path(__file__).with_name("schemas.json")


def build_schemas() -> list[dict[str, Any]]:
    """Return name, description and parameters of every built-in tool, in their order."""
    return [
        {
            "name": name,
            "description": " ".join((inspect.getdoc(model) or "").split()),
            "parameters": _slim(model.model_json_schema()),
            **({"grammar": GRAMMARS[name]} if name in GRAMMARS else {}),
        }
        for name, model in MODELS.items()
    ]


def _slim(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, with its definitions put in their places: fewer tokens, same meaning."""
    definitions: dict[str, Any] = schema.pop("$defs", {})
    schema.pop("description", None)
    return cast("dict[str, Any]", _clean(schema, definitions))


def _clean(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_clean(item, definitions) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    if "$ref" in fields:
        target = dict(definitions[str(fields["$ref"]).rsplit("/", 1)[1]])
        target.pop("description", None)
        return _clean(target, definitions)
    choices = fields.get("anyOf")
    if choices is not None:  # an optional value: saying that it may be null helps nobody
        real = [choice for choice in choices if choice != {"type": "null"}]
        fields = {key: value for key, value in fields.items() if key not in {"anyOf", "default"}} | real[0]
    # A property may be called "title" too: then its value is a schema, not a text.
    return {
        key: _clean(value, definitions)
        for key, value in fields.items()
        if not (key == "title" and isinstance(value, str))
    }


def main() -> None:
    """Write the file: one tool a line, since the parameters are sent as they stand here."""
    lines = [json.dumps(schema, separators=(",", ":"), ensure_ascii=False) for schema in build_schemas()]
    SCHEMA_FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
