"""Token use over time: a bar for each request (or for a few), a mark for each compaction. Drawn without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenuto.protocol.message import CompactionEntry
from tenuto.session.exporters.html.markup import EMPTY, Markup, element, line
from tenuto.session.exporters.labels import compaction_facts
from tenuto.session.exporters.source import format_time
from tenuto.session.exporters.spending import Request, Share, Timeline
from tenuto.text.figures import format_cost, format_count, plural

_LEFT, _TOP, _WIDTH, _HEIGHT = 56.0, 24.0, 930.0, 200.0
_MOST_BARS = 310
_MOST_MARKS = 310
_WIDEST = 60.0


def chart(timeline: Timeline) -> Markup:
    """Return the figure, or a sentence where no request says what it used."""
    if not timeline.requests:
        return element("p", Markup("No request of this session says how many tokens it used."), class_="note")
    limit = next((entry.trigger for _, entry in reversed(timeline.compactions) if entry.trigger > 0), 0)
    top, step = _scale(max(*(request.sent for request in timeline.requests), limit, 1))
    drawing = element(
        "svg",
        element("title", Markup("Size of each request in tokens, in the order of time")),
        *_grid(top, step),
        *_bars(timeline.requests, top),
        _limit(limit, top) if limit else EMPTY,
        *_compactions(timeline, len(timeline.requests)),
        *_ends(timeline.requests),
        viewBox="0 0 1000 270",
        role="img",
        class_="chart",
    )
    return element("figure", drawing, _legend(bool(timeline.compactions), bool(limit)))


def totals(shares: Sequence[Share]) -> Markup:
    """Return the table of sums; nothing when nothing is known."""
    if not shares:
        return EMPTY
    names = ("", "calls", "input", "from cache", "to cache", "output", "reasoning", "cost")
    head = element("tr", *[element("th", line(name), scope="col") for name in names])
    rows = [_share(share) for share in shares]
    return element("div", element("table", element("thead", head), element("tbody", *rows)), class_="totals")


def _share(share: Share) -> Markup:
    usage = share.usage
    numbers = (share.calls, usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
    cost = format_cost(usage.cost) if usage.cost is not None else "–"
    cells = [element("td", line(value)) for value in (*[f"{number:,}" for number in numbers], cost)]
    return element("tr", element("th", line(share.name), scope="row"), *cells)


def _scale(highest: int) -> tuple[int, int]:
    """Return the value at the upper edge and the distance of the lines: three to six of them, at round numbers."""
    unit = 1
    while unit * 10 <= highest:
        unit *= 10
    step = next((unit * part // 10 for part in (2, 5, 10, 20) if highest <= unit * part // 10 * 6), unit * 2) or 1
    return -(-highest // step) * step, step


def _number(value: float) -> str:
    return f"{value:.1f}"


def _height(value: float, top: int) -> float:
    return _HEIGHT * min(max(value, 0), top) / top


def _grid(top: int, step: int) -> Iterator[Markup]:
    for value in range(0, top + 1, step):
        y = _TOP + _HEIGHT - _height(value, top)
        yield _line("grid", _LEFT, y, _LEFT + _WIDTH, y)
        yield _label(_LEFT - 8, y + 4, format_count(value), "end")


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=_number(x1), y1=_number(y1), x2=_number(x2), y2=_number(y2), class_=kind)


def _label(x: float, y: float, words: str, anchor: str) -> Markup:
    return element("text", line(words), x=_number(x), y=_number(y), text_anchor=anchor)


def _bars(requests: Sequence[Request], top: int) -> Iterator[Markup]:
    """Yield a bar for each request; of many that share one, the largest is shown."""
    number = min(len(requests), _MOST_BARS)
    width = min(_WIDTH / number, _WIDEST)
    for bar in range(number):
        begin, end = bar * len(requests) // number, (bar + 1) * len(requests) // number
        shown = max(requests[begin:end], key=lambda request: request.sent)
        cached, whole = _height(shown.cached, top), _height(shown.sent, top)
        x, base = _LEFT + bar * width, _TOP + _HEIGHT
        yield element(
            "g",
            element("title", line(_tell(shown, begin, end))),
            _rectangle("cached", x, base - cached, width, cached),
            _rectangle("fresh", x, base - whole, width, whole - cached),
            _rectangle("hover", x, _TOP, width, _HEIGHT),
        )


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    gap = 1.0 if width > 4 else 0.0
    return element(
        "rect",
        x=_number(x),
        y=_number(y),
        width=_number(max(width - gap, 0.5)),
        height=_number(max(height, 0)),
        class_=kind,
    )


def _tell(request: Request, begin: int, end: int) -> str:
    which = f"request {begin + 1}" if end == begin + 1 else f"requests {begin + 1} to {end}, the largest"
    parts = [which, f"#{request.seq}", format_time(request.ts), f"{request.sent:,} tokens sent"]
    parts += [f"{request.cached:,} of them from the cache", f"{request.output:,} written"]
    return " · ".join(part for part in parts if part)


def _limit(limit: int, top: int) -> Markup:
    y = _TOP + _HEIGHT - _height(limit, top)
    title = element("title", line(f"compaction begins above {limit:,} tokens"))
    return element("g", title, _line("limit", _LEFT, y, _LEFT + _WIDTH, y))


def _compactions(timeline: Timeline, requests: int) -> Iterator[Markup]:
    shown = timeline.compactions
    stride = -(-len(shown) // _MOST_MARKS)
    for before, entry in shown[::stride] if stride > 1 else shown:
        yield _compaction(entry, _LEFT + min(_WIDTH / requests, _WIDEST) * before)


def _compaction(entry: CompactionEntry, x: float) -> Markup:
    words = " · ".join(["compaction", f"#{entry.seq}", *compaction_facts(entry, undone=False)])
    points = f"{x - 5:.1f},{_TOP - 12:.1f} {x + 5:.1f},{_TOP - 12:.1f} {x:.1f},{_TOP - 3:.1f}"
    return element(
        "a",
        element("title", line(words)),
        _line("mark", x, _TOP - 4, x, _TOP + _HEIGHT),
        element("polygon", points=points, class_="mark"),
        href=f"#e{entry.seq}",
    )


def _ends(requests: Sequence[Request]) -> Iterator[Markup]:
    """Yield what stands below the first and the last bar; below few bars there is room for one line only."""
    y = _TOP + _HEIGHT + 22
    ends = [(1, requests[0]), (len(requests), requests[-1])][: len(requests)]
    words = [" · ".join(part for part in (f"request {at:,}", format_time(end.ts)) if part) for at, end in ends]
    if len(requests) * _WIDEST < _WIDTH:
        yield _label(_LEFT, y, " to ".join(words), "start")
        return
    yield _label(_LEFT, y, words[0], "start")
    yield _label(_LEFT + _WIDTH, y, words[1], "end")


def _legend(has_compactions: bool, has_limit: bool) -> Markup:
    names = [("cached", "sent, from the cache"), ("fresh", "sent, new")]
    names += [("mark", "compaction")] if has_compactions else []
    names += [("limit", "where compaction begins")] if has_limit else []
    keys = [element("span", element("i", class_=kind), line(words), class_="key") for kind, words in names]
    return element("figcaption", element("span", Markup("Tokens of each request")), *keys)


def count_requests(timeline: Timeline) -> str:
    """Return how many requests and compactions there were, in words."""
    words = [plural(len(timeline.requests), "measured request")]
    if timeline.compactions:
        words.append(plural(len(timeline.compactions), "compaction"))
    return ", ".join(words)
