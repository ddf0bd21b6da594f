"""`scripts/schema`: the JSON Schema of `stream-json` as a file."""

from __future__ import annotations

import json
from pathlib import Path

from tenuto.frontend.lines import stream_schema

FILE = Path(__file__).parents[2] / "docs" / "reference" / "stream-json.schema.json"


def written() -> str:
    return json.dumps(stream_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
