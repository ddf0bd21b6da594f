"""Writes `schemas.json` from the argument models: `python -m tenuto.tool.run.build_schemas`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, cast

from tenuto.tool.run.arguments import MODELS

SCHEMA_FILE = Path(__file__).with_name("schemas.json")


def build_schemas() -> list[dict[str, Any]]:
    """Return name, description and parameters of every built-in tool, in their order."""
    return [
        {
            "name": name,
            "description": " ".join((inspect.getdoc(model) or "").split()),
            "parameters": _slim(model.model_json_schema()),
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
