"""`/context` as rows of (text, style name): a picture of the window, its parts, and its size over the session. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.protocol.usage import ContextReport, PartName, SizePoint
from tenuto.text.figures import format_count, whole_percent

Row = list[tuple[str, str]]

NAMES: dict[PartName, str] = {
    "system": "system prompt",
    "instructions": "instruction files",
    "tools": "tools",
    "summary": "summary",
    "pins": "pins",
    "user": "your messages",
    "answers": "answers",
    "thinking": "thinking",
    "calls": "tool calls",
    "results": "tool results",
    "notes": "system reminders",
    "queued": "queued",
}
SHADES = "█▓▒"
"""Neighbours differ in shade too, so that the picture can be read without colours."""
FREE, RESERVE, MARK = "·", "░", "▲"
"""Free until compaction begins; reserved above that, for the answer; where it begins."""
LEVELS = " ▁▂▃▄▅▆▇█"
_ASCII = str.maketrans("█▓▒·░▲▁▂▃▄▅▆▇…", "#=+.:^__--==#~")
PICTURE_ROWS = 4
CHART_ROWS = 4
MAX_WIDTH = 72
MIN_CHART = 2
"""Points below which there is no curve to show."""


def context_rows(report: ContextReport, width: int) -> list[Row]:
    """Return the rows for a screen of `width` cells."""
    cells = max(10, min(width, MAX_WIDTH))
    rows = [_title(report), [], *_picture(report, cells), [], *_legend(report), []]
    rows += [[(f"{name:<21}", "dim"), (text, "text")] for name, text in report.facts]
    if len(report.history) >= MIN_CHART:
        rows += [[], *_chart(report.history, cells)]
    return rows


def spoken_rows(report: ContextReport) -> list[Row]:
    """Return the same in words and numbers alone, for who has it read aloud."""
    legend = [" ".join("".join(text for text, _ in row[1:]).split()) for row in _legend(report)]
    facts = [f"{name}: {text}" for name, text in report.facts]
    rows: list[Row] = [_title(report), [], *([(text, "text")] for text in (*legend, *facts))]
    if len(report.history) >= MIN_CHART:
        highest = max(point.tokens for point in report.history)
        count = sum(point.compacted for point in report.history)
        rows.append([(f"most in this session: {highest:,} tokens; compactions: {count}", "text")])
    return rows


def in_ascii(row: Row) -> Row:
    """Return a row in 7-bit glyphs, for terminals that have no others."""
    return [(text.translate(_ASCII), style) for text, style in row]


def _title(report: ContextReport) -> Row:
    about = "~" if report.estimated else ""
    share = f" ({whole_percent(report.tokens, report.window)} %)" if report.known else ""
    if report.known and report.tokens > report.window:
        share = f" (over the window: {whole_percent(report.tokens, report.window)} %)"
    when = "would be sent with the first request" if report.next_request else "used"
    return [(f"{about}{report.tokens:,}", "bold"), (f" of {report.window:,} tokens {when}{share}", "text")]


def _segments(report: ContextReport) -> list[tuple[str, str, int]]:
    """Return glyph, style and tokens of everything in the window, in order."""
    parts = [
        (SHADES[place % len(SHADES)], f"context.{part.name}", part.tokens) for place, part in enumerate(report.parts)
    ]
    return [*parts, (FREE, "context.free", report.free), (RESERVE, "context.reserve", report.reserve)]


def _picture(report: ContextReport, width: int) -> list[Row]:
    """Return the window as a grid that is read line by line, with a mark where compaction starts."""
    total = width * PICTURE_ROWS
    whole = max(1, report.window, report.tokens)
    cells: list[tuple[str, str]] = []
    reached = 0
    for glyph, style, tokens in _segments(report):
        reached += tokens
        end = round(reached * total / whole)
        if tokens and end <= len(cells) and style not in ("context.free", "context.reserve"):
            end = len(cells) + 1  # whatever is there shows
        cells += [(glyph, style)] * (end - len(cells))
    cells = (cells + [(RESERVE, "context.reserve")] * total)[:total]
    at = min(total - 1, round(report.trigger * total / whole))
    cells[at] = (MARK, "context.trigger")
    return [_joined(cells[start : start + width]) for start in range(0, total, width)]


def _joined(cells: Sequence[tuple[str, str]]) -> Row:
    """Return cells as few spans."""
    row: Row = []
    for glyph, style in cells:
        if row and row[-1][1] == style:
            row[-1] = (row[-1][0] + glyph, style)
        else:
            row.append((glyph, style))
    return row


def _legend(report: ContextReport) -> list[Row]:
    window = report.window if report.known else 0
    rows = [
        _legend_row(SHADES[place % len(SHADES)], part.name, NAMES[part.name], part.tokens, window)
        for place, part in enumerate(report.parts)
    ]
    rows.append(_legend_row(FREE, "free", "free", report.free, window))
    rows.append(_legend_row(RESERVE, "reserve", "reserved for output", report.reserve, window))
    rows.append([(f"{MARK} ", "context.trigger"), (f"compacts over {report.trigger:,}", "dim")])
    return rows


def _legend_row(glyph: str, name: str, label: str, tokens: int, window: int) -> Row:
    share = f"  {100 * tokens / window:5.1f} %" if window else ""
    return [(f"{glyph} ", f"context.{name}"), (f"{label:<20}", "text"), (f"{tokens:>10,}", "text"), (share, "dim")]


def _chart(points: Sequence[SizePoint], width: int) -> list[Row]:
    """Return the size over the session as bars, each compaction marked above its place."""
    label = 7
    columns = _columns(points, width - label)
    highest = max(1, *(tokens for tokens, _ in columns))
    rows: list[Row] = [[("The context over the session", "bold")]]
    marks = "".join(MARK if compacted else " " for _, compacted in columns).rstrip()
    if marks:
        rows[0].append((f"  ({MARK} compacted)", "dim"))
        rows.append([(" " * label, "text"), (marks, "context.trigger")])
    for row in range(CHART_ROWS - 1, -1, -1):
        text = "".join(_cell(tokens * CHART_ROWS / highest - row) for tokens, _ in columns)
        top = format_count(highest) if row == CHART_ROWS - 1 else "0" if row == 0 else ""
        rows.append([(f"{top:>{label - 1}} ", "dim"), (text.rstrip(), "context.chart")])
    return rows


def _cell(height: float) -> str:
    return LEVELS[max(0, min(len(LEVELS) - 1, round(height * (len(LEVELS) - 1))))]


def _columns(points: Sequence[SizePoint], width: int) -> list[tuple[int, bool]]:
    """Return one column for each point, or where they are too many the largest of each group."""
    width = max(1, width)
    size = max(1, -(-len(points) // width))
    groups = (points[start : start + size] for start in range(0, len(points), size))
    return [(max(point.tokens for point in group), any(point.compacted for point in group)) for group in groups]
