"""The file lists of a summary, read back."""

from __future__ import annotations

import json
import re


def listed_in(text: str, tag: str) -> tuple[set[str], int]:
    """Read a list back: its paths, and how many it says are left out."""
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", text, re.DOTALL | re.MULTILINE)
    paths: list[str] = []
    left_out = 0
    for line in found[1].split("\n") if found else ():
        if said := re.fullmatch(r"… ([\d,]+) more; recall or the session's details have all", line):
            left_out = int(said[1].replace(",", ""))
        elif line.startswith('"'):
            paths.append(json.loads(line))
        elif gathered := re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", line):
            paths += [gathered[1] + name + gathered[3] for name in gathered[2].split(",")]
        else:
            paths.append(line)
    assert len(paths) == len(set(paths))
    return set(paths), left_out
