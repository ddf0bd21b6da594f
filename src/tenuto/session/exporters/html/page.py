"""The page: head with its policy, side bar, figures, transcript, branches, script. Yielded piece by piece."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.message import HistoryEvent
from tenuto.session.exporters.html.blocks import Blocks, moment
from tenuto.session.exporters.html.chart import chart, count_requests, totals
from tenuto.session.exporters.html.markup import EMPTY, Markup, closing, element, fold, join, line, opening
from tenuto.session.exporters.html.sidebar import tree
from tenuto.session.exporters.items import arrange
from tenuto.session.exporters.labels import branch_name
from tenuto.session.exporters.outline import Outline, Piece, read_outline
from tenuto.session.exporters.source import Source
from tenuto.session.exporters.spending import Timeline, read_shares, read_timeline
from tenuto.version import __version__

_HERE = Path(__file__).parent
_DAMAGE_SHOWN = 20


def write_page(source: Source) -> Iterator[str]:
    """Yield the whole page. Nothing in it refers to anything outside, and only its own script can run."""
    outline = read_outline(source.entries)
    timeline = read_timeline(source.entries)
    blocks = Blocks(source, outline.undone)
    yield _head(source.title)
    yield from _navigation(outline, source.state.labels)
    yield opening("main")
    yield _title(source, outline, timeline)
    yield _damage(source)
    yield _figures(source.entries, timeline)
    yield from _transcript(blocks, outline.path)
    yield _waiting(blocks, source.state.queue)
    for number, piece in enumerate(outline.branches, 1):
        yield from _branch(number, piece, blocks)
    yield join(closing("main"), _script(), Markup("</body>\n</html>\n"))


@lru_cache(maxsize=2)
def _asset(name: str) -> str:
    """Return the style or the script as it stands in the page. Raises `OSError` where the package is incomplete."""
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def policy() -> str:
    """Return the content security policy: images in the page, and the style and script with these very bytes."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(_asset('page.css'))}; "
        f"script-src {_hash(_asset('page.js'))}; base-uri 'none'; form-action 'none'"
    )


def _head(title: str) -> Markup:
    return join(
        Markup('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Markup('<meta http-equiv="x-dns-prefetch-control" content="off">\n'),
        Markup('<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'),
        opening("meta", name="generator", content=f"Tenuto {__version__}"),
        Markup("\n"),
        element("title", line(title)),
        Markup(f"\n<style>{_asset('page.css')}</style>\n</head>\n<body>\n"),
    )


def _script() -> Markup:
    return Markup(f"<script>{_asset('page.js')}</script>\n")


def _navigation(outline: Outline, labels: dict[int, str]) -> Iterator[Markup]:
    yield join(opening("nav", id="tree"), opening("details", open="open"), element("summary", Markup("Session")))
    yield from tree(outline, labels)
    yield join(closing("details"), closing("nav"), Markup("\n"))


def _title(source: Source, outline: Outline, timeline: Timeline) -> Markup:
    state = source.state
    facts = [
        element("code", line(source.id)),
        line(source.cwd),
        line(state.model),
        line(f"{len(outline.path):,} entries on the path, {len(source.entries):,} in all"),
        line(count_requests(timeline)),
    ]
    if source.forked_from is not None:
        facts.append(line(f"forked from {source.forked_from.session} after #{source.forked_from.seq}"))
    span = join(moment(state.created), Markup(" to "), moment(state.updated)) if state.created > 0 else EMPTY
    rows = [element("li", fact) for fact in (*facts, span) if fact]
    return element("header", element("h1", line(source.title)), element("ul", *rows, class_="about"), class_="page")


def _damage(source: Source) -> Markup:
    if not source.damage:
        return EMPTY
    rows = [element("li", line(str(damage))) for damage in source.damage[:_DAMAGE_SHOWN]]
    more = len(source.damage) - _DAMAGE_SHOWN
    rows += [element("li", line(f"and {more:,} more"))] if more > 0 else []
    head = line(f"Lines of the log that could not be read as they stand: {len(source.damage):,}")
    return fold(head, element("ul", *rows), class_="block aside")


def _figures(entries: Iterable[HistoryEvent], timeline: Timeline) -> Markup:
    shares = read_shares(entries)
    return element("section", element("h2", Markup("Tokens")), chart(timeline), totals(shares), id="tokens")


def _transcript(blocks: Blocks, entries: tuple[HistoryEvent, ...]) -> Iterator[Markup]:
    yield join(Markup("\n"), opening("section", id="transcript"), element("h2", Markup("Transcript")))
    for item in arrange(entries):
        yield join(Markup("\n"), blocks.render(item))
    yield closing("section")


def _waiting(blocks: Blocks, queue: tuple[QueuedEntry, ...]) -> Markup:
    if not queue:
        return EMPTY
    rows = [blocks.queued(entry) for entry in queue]
    return element("section", element("h2", Markup("Not sent yet")), *rows)


def _branch(number: int, piece: Piece, blocks: Blocks) -> Iterator[Markup]:
    yield join(Markup("\n"), opening("details", class_="branch", id=f"b{number}"))
    yield element("summary", Markup("Branch: "), line(branch_name(piece)))
    for item in arrange(piece.entries):
        yield join(Markup("\n"), blocks.render(item))
    yield closing("details")
