"""`python -m tests.trajectories FOLDER…` (`scripts/trajectories`): a table of what our tools make of recorded runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.trajectories.readers import find_recordings, read_recording
from tests.trajectories.replay import SLIPS, Tally, replay


async def measure(places: list[Path]) -> dict[str, tuple[int, Tally]]:
    """Return the number of recordings and the sum of their tallies, by agent."""
    found: dict[str, tuple[int, Tally]] = {}
    for path in (path for place in places for path in find_recordings(place)):
        agent, calls = read_recording(path)
        if calls:
            number, tally = found.setdefault(agent, (0, Tally()))
            tally.add(await replay(calls))
            found[agent] = number + 1, tally
    return found


def share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


def rows(number: int, tally: Tally) -> dict[str, str]:
    """Return one column of the table, by the heads of its rows."""
    made = {"recordings, calls": f"{number:,}, {tally.calls:,}"}
    for tool in ("read", "grep", "glob", "bash", "write", "edit"):
        made[f"taken by `{tool}`"] = share(tally.taken[tool], tally.asked[tool]) if tally.asked[tool] else "–"
    edits = tally.landed + tally.elsewhere + tally.unchecked
    made["edits that land with their bytes"] = share(tally.landed, edits)
    made["… and were shown so by a later answer"] = f"{tally.confirmed:,}"
    for slip in SLIPS:
        outcomes = [tally.slips[slip, outcome] for outcome in ("landed", "refused", "elsewhere")]
        made[f"edit, quoted with {slip}: lands, refused, elsewhere"] = ", ".join(map(str, outcomes))
    for tool in ("read", "write", "edit"):
        theirs, ours = tally.theirs[tool], tally.ours[tool]
        ratio = f" ({ours / theirs:.2f})" if theirs else ""
        made[f"tokens of results of `{tool}`: theirs, ours"] = f"{theirs:,}, {ours:,}{ratio}"
    made["not played: never shown, no counterpart, their linter refused"] = (
        f"{tally.unseen:,}, {tally.other:,}, {tally.linted:,}"
    )
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/trajectories", description=__doc__)
    parser.add_argument("places", nargs="+", type=Path, metavar="FOLDER", help="folders or files with recordings")
    parser.add_argument("--json", action="store_true", help="all counts as JSON")
    parser.add_argument("--faults", type=int, default=20, metavar="N", help="name the first N calls that went wrong")
    chosen = parser.parse_args()
    found = asyncio.run(measure(chosen.places))
    if not found:
        print("no recordings of a known kind were found there", file=sys.stderr)
        return 1
    if chosen.json:
        made = {agent: {"recordings": number, **plain(tally)} for agent, (number, tally) in found.items()}
        print(json.dumps(made, indent=1))
        return 0
    columns = {agent: rows(number, tally) for agent, (number, tally) in sorted(found.items())}
    print("| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for head in next(iter(columns.values())):
        print(f"| {head} | " + " | ".join(column[head] for column in columns.values()) + " |")
    for agent, (_, tally) in found.items():
        for fault in tally.faults[: chosen.faults]:
            print(f"{agent}: {fault}", file=sys.stderr)
    return 0


def plain(tally: Tally) -> dict[str, object]:
    made = dict(vars(tally))
    made["slips"] = {f"{slip}: {outcome}": number for (slip, outcome), number in tally.slips.items()}
    return made


if __name__ == "__main__":
    sys.exit(main())
