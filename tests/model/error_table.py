"""Error texts as providers send them, and what each means (T-15): the rows of two files.

`error_texts.jsonl` has one of each kind that is known; `seen_error_texts.jsonl` has texts that users have reported,
each with its source (`owner/repository#number` on GitHub). Those that are `held_out` were collected when the grammar
was written, and showed what it does with words that nobody had looked at.

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


def read_rows(name: str) -> list[Row]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").split("\n")
    rows: list[Row] = []
    for fields in map(json.loads, filter(None, lines)):
        text = fields["text"] if "text" in fields else json.dumps(fields["body"])
        numbers = (fields.get("observed"), fields.get("limit"))
        rows.append(Row(fields["provider"], fields.get("status"), text, fields["kind"], *numbers))
    return rows


SEEN = read_rows("seen_error_texts.jsonl")
ROWS = read_rows("error_texts.jsonl")
OVERFLOW = [row for row in ROWS if row.kind == "overflow"]
LOOK_ALIKES = [row for row in ROWS if row.kind != "overflow"]
