"""A program of its own that tries a regular expression on lines.

Python's matcher can run for ever on a bad expression and cannot be stopped from inside the process; this one can be
killed. It imports nothing of ours. Standard input: a line with the expression, then one line for each list of texts,
all JSON. Standard output: `{"error"}` for the expression, then for each list how many texts match and the first few.
"""

from __future__ import annotations

import json
import re
import signal
import sys

SHOWN = 3
LONGEST_RUN = 75
"""Seconds after which the system ends this process, should nobody be left to do it."""


def main() -> None:
    """Answer until the input ends."""
    if hasattr(signal, "alarm"):
        signal.alarm(LONGEST_RUN)
    try:
        pattern: re.Pattern[str] = re.compile(json.loads(sys.stdin.readline()), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        _say({"error": str(error)})
        return
    _say({"error": ""})
    for line in sys.stdin:
        total = 0
        hits: list[tuple[int, int]] = []
        for index, text in enumerate(json.loads(line)):
            found = pattern.search(text)
            if found is not None:
                total += 1
                if len(hits) < SHOWN:
                    hits.append((index, found.start()))
        _say({"total": total, "hits": hits})


def _say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
