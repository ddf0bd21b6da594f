"""A question of an MCP server to the user: the approval panel asks it, like a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from tenuto.core.state.approvals import OpenApprovals, Question
from tenuto.guard.terminal import sanitize_line, sanitize_output

if TYPE_CHECKING:
    from tenuto.tool.mcp.remote import Elicitation, Reply

TOOL = "mcp"
_TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list}


async def ask_elicitation(approvals: OpenApprovals, interactive: bool, asked: Elicitation) -> Reply:
    """Ask the user; yes sends the fields' own defaults, no with a JSON object sends that, any other no declines.

    Where nobody can be asked it is declined.
    """
    from tenuto.tool.mcp.remote import Reply  # servers are there, so it is imported

    if not interactive:
        return Reply(action="decline")
    defaults = default_content(asked.fields, asked.needed)
    question = Question(
        call_id="",
        tool=TOOL,
        summary=sanitize_line(f"{asked.server} asks: {asked.message}"),
        detail=_describe(asked, defaults),
        reason=f"the MCP server {asked.server} wants an answer",
    )
    answer = await approvals.ask(question, "")
    if answer.decision != "deny":
        return Reply(action="accept", content=defaults) if defaults is not None else Reply(action="decline")
    content = read_content(answer.feedback, asked.fields, asked.needed)
    return Reply(action="accept", content=content) if content is not None else Reply(action="decline")


def default_content(fields: Mapping[str, Any], needed: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the defaults of all fields that have one, `None` where a needed one has none."""
    known = {name: cast("dict[str, Any]", one) for name, one in fields.items() if isinstance(one, dict)}
    made: dict[str, Any] = {name: one["default"] for name, one in known.items() if "default" in one}
    return made if all(name in made for name in needed) else None


def read_content(text: str, fields: Mapping[str, Any], needed: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what a user wrote as a JSON object, `None` where it is none that fits the fields."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    content = cast("dict[str, Any]", values)
    fits = all(_fits(fields.get(name), value) for name, value in content.items())
    return content if fits and all(name in content for name in needed) else None


def _fits(field: object, value: object) -> bool:
    if not isinstance(field, dict):
        return False
    known = cast("dict[str, Any]", field)
    kind = _TYPES.get(known.get("type", ""))
    if kind is None or not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    return value in known["enum"] if isinstance(known.get("enum"), list) else True


def _describe(asked: Elicitation, defaults: dict[str, Any] | None) -> str:
    lines = [asked.message]
    if asked.url:
        return sanitize_output("\n".join([*lines, f"Open it yourself, if you trust it: {asked.url}"]))
    for name, one in asked.fields.items():
        field = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        words = [str(field.get("type", "")), "needed" if name in asked.needed else ""]
        if isinstance(field.get("enum"), list):
            words.append(f"one of {', '.join(map(str, field['enum']))}")
        if "default" in field:
            words.append(f"default {json.dumps(field['default'], ensure_ascii=False)}")
        lines.append(f"  {name}: {', '.join(filter(None, words))}  {field.get('description', '')}".rstrip())
    if asked.fields:
        lines.append("To fill it in, answer no with a JSON object as the reason. Any other no declines.")
        if defaults is None:
            lines.append("Yes declines as well: a field that is needed has no default.")
    return sanitize_output("\n".join(lines))
