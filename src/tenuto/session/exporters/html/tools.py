"""A tool call with what came of it, folded under one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tenuto.guard.sanitize import sanitize_output
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import DiffView, TodoView, ToolResultMessage
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.session.exporters.html.difference import difference
from tenuto.session.exporters.html.images import picture
from tenuto.session.exporters.html.markup import EMPTY, Markup, element, fold, join, line, preformatted, text
from tenuto.session.exporters.items import Call
from tenuto.session.exporters.labels import (
    call_state,
    call_subject,
    count_lines,
    cut_note,
    is_long,
    read_arguments,
    result_facts,
)
from tenuto.text.figures import plural

LoadBlob = Callable[[str], bytes]
_TODO_MARKS = {"pending": "☐", "in_progress": "▸", "done": "☑", "cancelled": "☒"}


def tool_call(call: Call, load_blob: LoadBlob, id_: str | None) -> Markup:
    """Return a call and its result as one folded block; `id_` names the result's entry."""
    has_diff = call.result is not None and any(isinstance(view, DiffView) for view in call.result.ui)
    body = [_arguments(call.part.arguments, is_aside=has_diff)]
    if call.part.fault:
        body.append(element("p", text(f"The arguments could not be read: {call.part.fault}"), class_="note"))
    if call.result is not None:
        body.extend(_result(call.result, load_blob))
    return fold(_head(call), *body, class_=f"tool {call_state(call.result)}", id_=id_)


def lone_result(result: ToolResultMessage, load_blob: LoadBlob, id_: str | None) -> Markup:
    """Return a result whose call is not there."""
    facts = " · ".join(["a result without its call", *result_facts(result)])
    head = join(element("b", line(result.name)), Markup(" "), element("span", line(facts), class_="facts"))
    return fold(head, *_result(result, load_blob), class_=f"tool {call_state(result)}", id_=id_)


def output(content: str) -> Markup:
    """Return a program's output as a terminal would have left it; a long one opens by itself."""
    if not content.strip():
        return EMPTY
    block = preformatted(sanitize_output(content), "output")
    return fold(line(plural(count_lines(content), "line")), block, class_="long") if is_long(content) else block


def _head(call: Call) -> Markup:
    subject, facts = call_subject(call), " · ".join(result_facts(call.result))
    return join(
        element("b", line(call.part.name or "tool")),
        Markup(" "),
        element("code", line(subject), class_="subject") if subject else EMPTY,
        element("span", line(facts), class_="facts") if facts else EMPTY,
    )


def _arguments(arguments: str, *, is_aside: bool) -> Markup:
    pairs = read_arguments(arguments)
    if not pairs:
        return EMPTY
    rows = [
        join(element("dt", line(name or "arguments")), element("dd", preformatted(value, "value")))
        for name, value in pairs
    ]
    table = element("dl", *rows, class_="arguments")
    return fold(Markup("arguments"), table, class_="long") if is_aside or is_long(arguments) else table


def _result(result: ToolResultMessage, load_blob: LoadBlob) -> Iterator[Markup]:
    for view in result.ui:
        if isinstance(view, DiffView):
            yield difference(view)
        elif isinstance(view, TodoView):
            yield todo_list(view.items)
    yield contents(result.parts, load_blob)
    if result.truncated:
        yield element("p", text(cut_note(result)), class_="note")


def contents(parts: tuple[ContentPart, ...], load_blob: LoadBlob) -> Markup:
    """Return the texts and images of a result, in order."""
    shown: list[Markup] = []
    for part in parts:
        match part:
            case TextPart():
                shown.append(output(part.text))
            case ImagePart():
                shown.append(picture(part, load_blob))
    return join(*shown)


def todo_list(items: tuple[TodoItem, ...]) -> Markup:
    """Return a todo list."""
    rows = [
        element("li", Markup(f"{_TODO_MARKS[item.status]} "), line(item.text), class_=item.status) for item in items
    ]
    return element("ul", *rows, class_="todo") if rows else EMPTY
