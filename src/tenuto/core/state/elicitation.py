"""A question of an MCP server to the user: one panel for each field of its form, then all of it before it is sent.

Esc cancels the whole question, at whatever field. What a field may hold is checked here; the server checks again.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct

from tenuto.core.state.approvals import Answer, OpenApprovals, Question
from tenuto.guard.terminal import sanitize_line, sanitize_output
from tenuto.protocol.entry import Level
from tenuto.protocol.event import OfferedAnswer
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

if TYPE_CHECKING:
    from tenuto.tool.mcp.remote import Elicitation, Reply

TOOL = "mcp"
MOST_ANSWERS = 7
"""Values that are offered one by one, so that every answer has a number key; of more, one is written."""
MOST_FIELDS = 50
_TITLE_CHARS = 200
_LABEL_CHARS = 120
DECLINE = "Decline: nothing is sent"
WRITE = "Write it"

Kind = Literal["string", "integer", "number", "boolean", "list"]


class Field(Struct, frozen=True, kw_only=True):
    """One field of a form. `values` are all that it may hold, with `labels` for people; none: anything of its kind.

    `form` is what a text has to look like (a date, an address). `least` and `most` bound a number, the characters of a
    text, or how many values of a list.
    """

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    needed: bool = False
    default: Any = None
    values: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    form: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def heading(self) -> str:
        """What people call it."""
        return self.title or self.name


class Ended(Exception):  # noqa: N818 - it names what happened
    """The user has ended the question."""

    def __init__(self, action: Literal["decline", "cancel"]) -> None:
        self.action: Literal["decline", "cancel"] = action


async def ask_elicitation(
    approvals: OpenApprovals, tell_nobody: Callable[[str, Level], None] | None, asked: Elicitation
) -> Reply:
    """Ask the user, field by field. Where nobody can be asked it is declined, and `tell_nobody` says so."""
    from tenuto.tool.mcp.remote import Reply  # servers are there, so it is imported

    if tell_nobody is not None:
        message = sanitize_line(shorten(asked.message, _TITLE_CHARS))
        tell_nobody(f"MCP server {asked.server} asks: {message} Declined: nobody is there to answer.", "warning")
        return Reply(action="decline")
    try:
        return Reply(action="accept", content=await _Form(approvals, asked).fill())
    except Ended as ended:
        return Reply(action=ended.action)


class _Form:
    """One question of a server, while it is asked."""

    def __init__(self, approvals: OpenApprovals, asked: Elicitation) -> None:
        self._approvals = approvals
        self._asked = asked
        self._fields = read_fields(asked.fields, asked.needed)
        self._reviews = len(self._fields) > 1
        self._panels = len(self._fields) + self._reviews

    async def fill(self) -> dict[str, Any]:
        """Return what the user says. Raises `Ended`."""
        asked = self._asked
        if any(name not in {field.name for field in self._fields} for name in asked.needed):
            await self._ask(0, "It needs something that cannot be asked here.", (OfferedAnswer(label=DECLINE),))
            raise Ended("decline")
        if not self._fields:
            text = f"Open it yourself, if you trust it: {asked.url}" if asked.url else ""
            yes = OfferedAnswer(label="I have opened it: go on" if asked.url else "Accept", letter="y")
            answer = await self._ask(0, text, (yes, OfferedAnswer(label=DECLINE, letter="n")))
            if answer.choice:
                raise Ended("decline")
            return {}
        content: dict[str, Any] = {}
        for number, field in enumerate(self._fields):
            value = await self._ask_field(number, field)
            if value is not None:
                content[field.name] = value
        if self._reviews:
            await self._review(content)
        return content

    async def _ask_field(self, number: int, field: Field) -> Any:
        """Return the value of a field, `None` where it is left out. Raises `Ended`."""
        offered = offer(field)
        fault = ""
        while True:
            answer = await self._ask(number, describe_field(field, fault), tuple(one for one, _ in offered))
            label, value = offered[answer.choice]
            if label.label == DECLINE:
                raise Ended("decline")
            if not label.writes:
                return value
            value, fault = read_value(field, answer.feedback)
            if not fault:
                return value

    async def _review(self, content: Mapping[str, Any]) -> None:
        """Show what would be sent. Raises `Ended`."""
        said = (f"{field.heading}: {show_value(content.get(field.name))}" for field in self._fields)
        send = OfferedAnswer(label=f"Send this to {self._asked.server}", letter="y")
        answer = await self._ask(self._panels - 1, "\n".join(said), (send, OfferedAnswer(label=DECLINE, letter="n")))
        if answer.choice:
            raise Ended("decline")

    async def _ask(self, number: int, text: str, answers: tuple[OfferedAnswer, ...]) -> Answer:
        """Ask one thing. Raises `Ended`."""
        title = f"{self._asked.server} asks: {shorten(self._asked.message, _TITLE_CHARS)}"
        whole = f"{self._asked.message}\n\n{text}" if len(self._asked.message) > _TITLE_CHARS else text
        question = Question(
            call_id="",
            tool=TOOL,
            summary=sanitize_line(title),
            detail=sanitize_output(whole) or " ",
            reason="",
            kind="question",
            answers=answers,
            asked=number,
            behind=max(0, self._panels - number - 1),
        )
        answer = await self._approvals.ask(question, "")
        if answer.decision == "deny" or not 0 <= answer.choice < len(answers):
            raise Ended("cancel")
        return answer


# --- what is asked for: pure ---


def read_fields(fields: Mapping[str, Any], needed: tuple[str, ...]) -> tuple[Field, ...]:
    """Return the fields of a schema that people can fill in: texts, numbers, yes or no, some of several values."""
    found: list[Field] = []
    for name, one in list(fields.items())[:MOST_FIELDS]:
        if isinstance(one, dict):
            made = _read_field(name, cast("dict[str, Any]", one), needed=name in needed)
            found += [made] if made is not None else []
    return tuple(found)


def _read_field(name: str, schema: Mapping[str, Any], *, needed: bool) -> Field | None:
    kind, values = schema.get("type"), schema
    if kind == "array":
        kind, values = "list", schema.get("items")
        if not isinstance(values, dict):
            return None
    elif kind not in ("string", "integer", "number", "boolean"):
        return None
    names = ("minItems", "maxItems") if kind == "list" else ("minLength", "maxLength")
    least, most = names if kind in ("list", "string") else ("minimum", "maximum")
    own, labels = _values(cast("Mapping[str, Any]", values))
    if kind == "list" and not own:
        return None
    return Field(
        name=name,
        kind=kind,
        title=_text(schema, "title"),
        description=_text(schema, "description"),
        needed=needed,
        default=schema.get("default"),
        values=own if kind in ("string", "list") else (),
        labels=labels,
        form=_text(schema, "format"),
        least=_number(schema.get(least)),
        most=_number(schema.get(most)),
    )


def _values(schema: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the values that a schema allows and what people call them, in each of the ways in which it can say so."""
    plain, named = schema.get("enum"), schema.get("oneOf", schema.get("anyOf"))
    if isinstance(plain, list):
        own = tuple(one for one in cast("list[Any]", plain) if isinstance(one, str))
        labels = schema.get("enumNames")
        given = tuple(map(str, cast("list[Any]", labels))) if isinstance(labels, list) else ()
        return own, given if len(given) == len(own) else own
    if not isinstance(named, list):
        return (), ()
    rows = [cast("dict[str, Any]", row) for row in cast("list[Any]", named) if isinstance(row, dict)]
    known = [(row["const"], str(row.get("title", row["const"]))) for row in rows if isinstance(row.get("const"), str)]
    return tuple(value for value, _ in known), tuple(label for _, label in known)


def _text(schema: Mapping[str, Any], key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def offer(field: Field) -> list[tuple[OfferedAnswer, Any]]:
    """Return the answers to a field, each with the value that it gives; what is written has none yet."""
    rows: list[tuple[OfferedAnswer, Any]] = []
    default = field.default if fault_of(field, field.default) == "" else None
    if field.kind == "boolean":
        rows = [(OfferedAnswer(label="Yes", letter="y"), True), (OfferedAnswer(label="No", letter="n"), False)]
    elif field.kind == "string" and field.values and len(field.values) <= MOST_ANSWERS:
        rows = [(_answer(label), value) for value, label in zip(field.values, field.labels, strict=True)]
    elif default is not None:
        rows = [(_answer(f"As proposed: {show_value(default)}"), default)]
    if field.kind == "list" or (field.kind != "boolean" and not 0 < len(field.values) <= MOST_ANSWERS):
        rows.append((OfferedAnswer(label=WRITE, writes=True), None))
    if default is not None and rows[0][1] != default:  # what is proposed is what Enter takes
        rows.sort(key=lambda row: row[0].writes or row[1] != default)
    if not field.needed:
        rows.append((OfferedAnswer(label="Leave it out"), None))
    return [*rows, (OfferedAnswer(label=DECLINE), None)]


def _answer(text: str) -> OfferedAnswer:
    return OfferedAnswer(label=sanitize_line(shorten(text, _LABEL_CHARS)))


def describe_field(field: Field, fault: str = "") -> str:
    """Return what a user is told of a field: its name, what it is for, what it may hold, what was wrong."""
    head = f"{field.heading}{'' if field.needed else ' (may be left out)'}"
    lines = [f"{head}: {field.description}" if field.description else head]
    if field.values and (field.kind == "list" or len(field.values) > MOST_ANSWERS):
        what = "Some of, with commas between them" if field.kind == "list" else "One of"
        lines.append(f"{what}: {', '.join(field.values)}")
    elif field.kind in ("integer", "number"):
        lines.append("A whole number" + _bounds(field) if field.kind == "integer" else "A number" + _bounds(field))
    return "\n".join([*lines, f"That does not fit: {fault}."] if fault else lines)


def _bounds(field: Field) -> str:
    bounds = [
        f"{word} {bound:g}" for word, bound in (("at least", field.least), ("at most", field.most)) if bound is not None
    ]
    return f", {' and '.join(bounds)}" if bounds else ""


def read_value(field: Field, text: str) -> tuple[Any, str]:
    """Return what a user wrote as a value of its field, and why it is none (empty: it is one)."""
    value: Any = text.strip()
    match field.kind:
        case "integer" | "number":
            with contextlib.suppress(ValueError):
                value = float(value) if field.kind == "number" else int(value)
        case "list":
            value = [word.strip() for word in value.split(",") if word.strip()]
            value = [_by_label(field, word) for word in value]
        case "string" if field.values:
            value = _by_label(field, value)
        case "string" | "boolean":
            pass
    return value, fault_of(field, value)


def _by_label(field: Field, word: str) -> str:
    if word in field.values:
        return word
    return next((value for value, label in zip(field.values, field.labels, strict=True) if label == word), word)


def fault_of(field: Field, value: Any) -> str:
    """Return why a value does not fit its field, empty where it does."""
    match field.kind:
        case "boolean":
            return "" if isinstance(value, bool) else "yes or no is needed"
        case "integer" | "number":
            kinds = int if field.kind == "integer" else (int, float)
            if not isinstance(value, kinds) or isinstance(value, bool) or not math.isfinite(value):
                return "a whole number is needed" if field.kind == "integer" else "a number is needed"
            return _outside(field, value, "")
        case "list":
            if not isinstance(value, list):
                return "a list is needed"
            given = cast("list[Any]", value)
            wrong = [str(one) for one in given if one not in field.values]
            return f"{wrong[0]} is not one of them" if wrong else _outside(field, len(given), "value")
        case "string":
            if not isinstance(value, str):
                return "a text is needed"
            if field.values:
                return "" if value in field.values else f"{value or 'nothing'} is not one of them"
            return _outside(field, len(value), "character") or _misshapen(field.form, value)


def _misshapen(form: str, text: str) -> str:
    """Return what a text of this form has to look like, where it does not."""
    try:
        match form:
            case "date":
                date.fromisoformat(text)
            case "date-time":
                datetime.fromisoformat(text)
            case "email" if not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
                return "an e-mail address is needed"
            case "uri" if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S", text):
                return "an address is needed, like https://example.org"
            case _:
                pass
    except ValueError:
        return "a date is needed, like 2026-07-28" + ("T12:00:00" if form == "date-time" else "")
    return ""


def _outside(field: Field, size: float, unit: str) -> str:
    """Return which bound a number, or a number of units, is beyond."""

    def bound(word: str, number: float) -> str:
        return f"at {word} {plural(int(number), unit) if unit else f'{number:g}'}"

    if field.least is not None and size < field.least:
        return bound("least", field.least)
    return bound("most", field.most) if field.most is not None and size > field.most else ""


def show_value(value: Any) -> str:
    """Return a value as users read it."""
    if value is None:
        return "(left out)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[Any]", value)))
    return str(value)
