"""Error texts as providers send them, and what each means (T-15): the rows of `error_texts.jsonl`.

A row has the provider, the status (none: inside a stream or an exception), the `text` or the JSON `body`, the kind,
and the numbers that the text states.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    provider: str
    status: int | None
    text: str
    kind: str
    observed: int | None = None
    limit: int | None = None


def openai(message: str, code: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})


def read_rows() -> list[Row]:
    lines = Path(__file__).with_name("error_texts.jsonl").read_text(encoding="utf-8").split("\n")
    rows: list[Row] = []
    for fields in map(json.loads, filter(None, lines)):
        text = fields["text"] if "text" in fields else json.dumps(fields["body"])
        numbers = (fields.get("observed"), fields.get("limit"))
        rows.append(Row(fields["provider"], fields.get("status"), text, fields["kind"], *numbers))
    return rows


ROWS = read_rows()
OVERFLOW = [row for row in ROWS if row.kind == "overflow"]
LOOK_ALIKES = [row for row in ROWS if row.kind != "overflow"]
