"""The chart: a row a figure, a mark an agent, its place how many times ours it is, on a scale of powers of ten."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

from scripts.bench_lib.peers.summary import Comparison

LABEL_WIDTH, PLOT_WIDTH, ROW_HEIGHT, RADIUS = 300, 520, 26, 5.5
TOP, MARGIN = 76, 20
LEAST, MOST = 0.001, 10_000.0
"""What lies further out is drawn at these ends."""
COLOURS = ("#0b7a6f", "#57b8ac", "#c2410c", "#1d4ed8", "#7c3aed", "#a16207", "#be185d", "#475569", "#15803d", "#0e7490")


def to_svg(rows: Sequence[tuple[str, Comparison]], agents: Sequence[str], caption: str) -> str:
    """Return the picture of these comparisons, each with its title; agents in the order of their colours."""
    least, most = _ends([place for _, row in rows for place in _places(row).values()])
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(agents)}
    height, width = TOP + len(rows) * ROW_HEIGHT + MARGIN, LABEL_WIDTH + PLOT_WIDTH + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">',
        f"<title>{html.escape(caption)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(colours),
        *_grid(least, most, height),
    ]
    for number, (title, row) in enumerate(rows):
        y = TOP + number * ROW_HEIGHT + ROW_HEIGHT / 2
        parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{y + 4:.1f}" text-anchor="end">{html.escape(title)}</text>')
        for name, place in _places(row).items():
            x = _x(place, least, most)
            says = html.escape(f"{title}: {name} {place:.3g} ×")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colours[name]}" fill-opacity="0.85">'
                f"<title>{says}</title></circle>"
            )
    return "\n".join([*parts, "</svg>", ""])


def _places(row: Comparison) -> dict[str, float]:
    """Return how many times ours each agent's figure is; those of 0 have no place on such a scale."""
    found = {name: row.times(name) for name in row.spreads}
    return {name: min(max(place, LEAST), MOST) for name, place in found.items() if place}


def _ends(places: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten between which all places are; never less than 0.1 to 10."""
    lowest, highest = min([*places, 0.1]), max([*places, 10.0])
    return 10.0 ** math.floor(math.log10(lowest)), 10.0 ** math.ceil(math.log10(highest))


def _x(place: float, least: float, most: float) -> float:
    share = (math.log10(place) - math.log10(least)) / (math.log10(most) - math.log10(least))
    return LABEL_WIDTH + share * PLOT_WIDTH


def _legend(colours: dict[str, str]) -> Iterator[str]:
    x = float(MARGIN)
    for name, colour in colours.items():
        yield f'<circle cx="{x:.0f}" cy="20" r="{RADIUS}" fill="{colour}"/>'
        yield f'<text x="{x + 10:.0f}" y="24">{html.escape(name)}</text>'
        x += 24 + 7 * len(name)


def _grid(least: float, most: float, height: float) -> Iterator[str]:
    says = "times ours, by powers of ten; further left is less, and better"
    yield f'<text x="{LABEL_WIDTH}" y="46" font-size="11">{says}</text>'
    for power in range(round(math.log10(least)), round(math.log10(most)) + 1):
        place = 10.0**power
        x, is_ours = _x(place, least, most), power == 0
        stroke = 'stroke="#1f2937" stroke-width="1.5"' if is_ours else 'stroke="#d1d5db"'
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - MARGIN}" {stroke}/>'
        yield f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle" font-size="11">{place:g} ×</text>'
