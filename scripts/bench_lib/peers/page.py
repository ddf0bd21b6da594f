"""The page: what was measured goes between two marks of `peers.md`; the words around it are written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.bench_lib.peers.chart import to_svg
from scripts.bench_lib.peers.plan import HEADLINES, MEASURES
from scripts.bench_lib.peers.record import Record
from scripts.bench_lib.peers.summary import Comparison, Spread, compare, figures_of
from scripts.bench_lib.report import amount

BEGIN, END = "<!-- results: written by scripts/bench peers -->", "<!-- end of the results -->"
PAGE, CHART = "peers.md", "peers.svg"
TITLES = {measure.name: measure.title for measure in MEASURES}


def write_page(record: Record, folder: Path) -> None:
    """Write the chart, and the results into the page, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    text = page.read_text(encoding="utf-8") if page.exists() else f"# Beside other agents\n\n{BEGIN}\n{END}\n"
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{to_markdown(record)}\n{END}{after}", encoding="utf-8")
    (folder / CHART).write_text(to_svg(_headlines(record), record.agents, _caption(record)), encoding="utf-8")


def to_markdown(record: Record) -> str:
    """Return everything that was measured: the ratios, what they are of, what is missing, each figure."""
    parts = [_circumstances(record), f"![{_caption(record)}]({CHART})", _ratios(record), _notes(record)]
    parts += [_missing(record), "### Every figure", _details(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _own(record: Record) -> tuple[str, list[str]]:
    ours = [agent["name"] for agent in record.head["agents"] if agent["ours"]]
    return (ours[0] if ours else ""), ours


def _compared(record: Record, measure: str, figure: str) -> Comparison:
    own, ours = _own(record)
    return compare(record, measure, figure, own, ours)


def _headlines(record: Record) -> list[tuple[str, Comparison]]:
    found = [(title, _compared(record, *key)) for key, title in HEADLINES.items()]
    return [(title, row) for title, row in found if row.spreads]


def _caption(record: Record) -> str:
    return f"How many times Tenuto's each agent's figure is, {record.head['date']}"


def _circumstances(record: Record) -> str:
    head, machine = record.head, record.head["machine"]
    versions = ", ".join(f"{agent['name']} {agent['version']}" for agent in head["agents"])
    load = f"{machine['load']:.1f} before, {head.get('load_after', machine['load']):.1f} after"
    return (
        f"Measured {head['date']} at revision `{head['tenuto_revision']}`, pace *{head['pace']}*. {versions}. "
        f"Machine: {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}, load {load}. Network: {head['network']}."
    )


def _ratios(record: Record) -> str:
    own, _ = _own(record)
    others = [name for name in record.agents if name != own]
    rows = [["figure", f"{own} / best peer", own, *others]]
    for (measure, figure), title in HEADLINES.items():
        row = _compared(record, measure, figure)
        if row.spreads:
            rows.append(
                [title, verdict(row), _absolute(row.spreads.get(own), figure), *(_times(row, one) for one in others)]
            )
    return _table(rows)


def verdict(row: Comparison) -> str:
    """Return the ratio to the best peer, with its name; ≈ where the middle halves of the runs overlap."""
    if row.ratio is None:
        return "–"
    return f"{'≈ ' if row.is_close else ''}**{amount(row.ratio)}** ({row.best})"


def _times(row: Comparison, agent: str) -> str:
    times = row.times(agent)
    return f"{amount(times)} ×" if times is not None else "–"


def _absolute(spread: Spread | None, figure: str) -> str:
    return f"{amount(spread.median)} {unit_of(figure)}" if spread else "–"


def unit_of(figure: str) -> str:
    """Return the unit, with which the name of every figure ends."""
    return figure.rpartition(" ")[2]


def _notes(record: Record) -> str:
    return "\n".join(f"- {agent['name']}: {note}" for agent in record.head["agents"] for note in agent["notes"])


def _missing(record: Record) -> str:
    lines = [f"- {name}: {reason}" for name, reason in record.head["absent"].items()]
    reasons: dict[tuple[str, str], list[str]] = {}
    for (measure, agent), reason in record.missing.items():
        reasons.setdefault((agent, reason), []).append(measure)
    lines += [f"- {agent}, {', '.join(measures)}: {_escaped(reason)}" for (agent, reason), measures in reasons.items()]
    return "\n".join(["Not measured:", "", *lines]) if lines else ""


def _escaped(text: str) -> str:
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|$" else one for one in text)


def _details(record: Record) -> str:
    rows = [["measure", "figure", "agent", "median", "middle half", "least … most", "runs", "times ours"]]
    for measure, figure in figures_of(record):
        row = _compared(record, measure, figure)
        for name, spread in row.spreads.items():
            rows.append([TITLES.get(measure, measure), figure, name, *_cells(spread), _times(row, name)])
    return _table(rows)


def _cells(spread: Spread) -> Iterator[str]:
    yield amount(spread.median)
    yield f"{amount(spread.lower)} … {amount(spread.upper)}" if spread.runs > 1 else "–"
    yield f"{amount(spread.least)} … {amount(spread.most)}" if spread.runs > 1 else "–"
    yield str(spread.runs)


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
