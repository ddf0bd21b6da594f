"""The picture of a report, as SVG: what stays in view by round for each strategy, and by kind for the first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tenuto.evaluation.quality import Row

WIDTH, HEIGHT = 900, 470
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 52, 44, 330, 300
MAP_LEFT, CELL_WIDTH, CELL_HEIGHT = 540, 30, 18
COLOURS = ("#0f766e", "#b45309", "#be123c", "#6d28d9", "#475569", "#0369a1", "#65a30d")
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#334155}.s{font-size:11px}.h{font-size:14px;font-weight:bold}"
    "@media(prefers-color-scheme:dark){text{fill:#cbd5e1}}</style>"
)


def draw(rows: Sequence[Row], title: str) -> str:
    """Return the picture of rows of one window, writer and source."""
    label = escape(title, quote=True)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
            _STYLE,
            f'<text class="h" x="{LEFT}" y="20">{escape(title)}</text>',
            *_lines(rows),
            *(_map(rows[0]) if rows else ()),
            "</svg>\n",
        )
    )


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = _y(percent)
        yield f'<line x1="{LEFT}" x2="{LEFT + PLOT_WIDTH}" y1="{y}" y2="{y}" stroke="#94a3b8" stroke-width="0.5"/>'
        yield f'<text class="s" x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{percent} %</text>'
    last = max((len(row.all_in_view) for row in rows), default=1)
    below = TOP + PLOT_HEIGHT + 16
    for number in range(1, last + 1):
        yield f'<text class="s" x="{_x(number, last)}" y="{below}" text-anchor="middle">{number}</text>'
    middle = LEFT + PLOT_WIDTH // 2
    yield f'<text class="s" x="{middle}" y="{TOP + PLOT_HEIGHT + 32}" text-anchor="middle">in view after round</text>'
    for place, row in enumerate(rows):
        colour = COLOURS[place % len(COLOURS)]
        points = " ".join(f"{_x(number, last)},{_y(share)}" for number, share in enumerate(row.all_in_view, 1))
        dash = f' stroke-dasharray="{4 + 2 * place} {2 + place % 3}"' if place else ""
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        x, y = LEFT + 170 * (place % 2), TOP + PLOT_HEIGHT + 56 + 16 * (place // 2)
        yield f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2"{dash}/>'
        yield f'<text class="s" x="{x + 24}" y="{y}">{escape(row.strategy)}</text>'


def _map(row: Row) -> Iterator[str]:
    yield f'<text x="{MAP_LEFT}" y="{TOP - 6}">{escape(row.strategy)}, by kind and round, %</text>'
    for place, (kind, shares) in enumerate(row.in_view.items()):
        y = TOP + 6 + place * CELL_HEIGHT
        yield f'<text class="s" x="{MAP_LEFT - 6}" y="{y + 13}" text-anchor="end">{escape(kind)}</text>'
        for number, share in enumerate(shares):
            if share is None:
                continue
            x = MAP_LEFT + number * CELL_WIDTH
            light = 92 - share * 0.6
            ink = "#ffffff" if light < 55 else "#0f172a"
            size = f'width="{CELL_WIDTH - 1}" height="{CELL_HEIGHT - 1}"'
            yield f'<rect x="{x}" y="{y}" {size} fill="hsl(175 55% {light:.0f}%)"/>'
            place_of = f'x="{x + CELL_WIDTH // 2}" y="{y + 13}" text-anchor="middle"'
            yield f'<text class="s" {place_of} style="fill:{ink}">{share:.0f}</text>'


def _x(number: int, last: int) -> int:
    return LEFT + round((number - 1) * PLOT_WIDTH / max(1, last - 1))


def _y(percent: float) -> int:
    return TOP + round((100 - percent) * PLOT_HEIGHT / 100)
