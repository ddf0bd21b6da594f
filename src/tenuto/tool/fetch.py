"""The `fetch` tool: one page or file over http(s), bounded in size and time, and the readable text of a page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from tenuto.guard.addresses import is_private_address, look_up
from tenuto.guard.foreign import MOST_UNSEEN, MOST_UNSEEN_TOGETHER, PAGE_TAG, count_unseen, frame, is_foreign
from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import PageView, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.bounding import shorten
from tenuto.tool.image import MAX_IMAGE_BYTES, image_facts
from tenuto.tool.output import ToolOutput, format_size
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.version import __version__

if TYPE_CHECKING:
    import httpx

    from tenuto.tool.run.arguments import FetchArguments


_HIDDEN = ("head", "script", "style", "noscript", "template", "svg", "iframe", "canvas", "object", "select")
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "ul", "ol", "dl", "form"}
    | {"blockquote", "figure", "figcaption", "details", "summary", "address", "hr", "fieldset", "tbody", "thead"}
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_INDENTED = 10
"""Lists; deeper ones would be made of spaces."""
_RESOURCE_LIMIT = 114
"""What libxml2 calls a page that is too deep; lxml 6.0 knows the number alone."""
TOO_DEEP = "(The page is nested too deeply: the rest could not be read. Fetch it with raw.)"


def html_to_text(html: str, base: str = "") -> str:
    """Return the readable text of a page, its title first; links become absolute against `base`.

    Where there is one `main`, that is taken. Navigation is left out where it is not all that there is.
    """
    import lxml.etree

    etree = cast("Any", lxml.etree)  # it has no types
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    page = etree.fromstring(html.encode("utf-8", "replace"), parser)
    if page is None:
        return ""
    title = _SPACE.sub(" ", page.findtext("head/title") or "").strip()
    etree.strip_elements(page, *_HIDDEN, with_tail=False)
    mains = page.findall(".//main")
    top = mains[0] if len(mains) == 1 else page
    text = _write(etree, top, base, skipped="nav") or _write(etree, top, base)
    too_deep = any(error.type == _RESOURCE_LIMIT for error in parser.error_log)
    return "\n\n".join(part for part in (title, text, TOO_DEEP if too_deep else "") if part)


def _write(etree: Any, top: Any, base: str, skipped: str = "") -> str:
    writer = _Writer(base)
    walker = etree.iterwalk(top, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            writer.close(element.tag)
            writer.take(element.tail if element is not top else None)
        elif element.tag == skipped:
            walker.skip_subtree()
        else:
            writer.open(element.tag, element.attrib)
            writer.take(element.text)
    return writer.text()


class _Writer:
    """Collects the text of a page."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._out: list[str] = []
        self._preformatted: list[int] = []
        """Where each open `pre` begins."""
        self._lists: list[int] = []
        """The number of the last item in each open list, -1 where they have none."""
        self._link: tuple[str, int] | None = None

    def text(self) -> str:
        """Return what was collected."""
        lines = "\n".join(line.rstrip(" \t\r") for line in "".join(self._out).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", lines).strip()

    def take(self, text: str | None) -> None:
        """Take text."""
        if text and not self._preformatted:
            text = _SPACE.sub(" ", text)
            if self._is_at_line_start() or self._out[-1].endswith(" "):
                text = text.lstrip(" ")
        if text:
            self._out.append(text)

    def open(self, tag: str, attributes: Any) -> None:
        """Begin an element."""
        if tag == "pre":
            self._break(2)
            self._preformatted.append(len(self._out))
        elif self._preformatted:
            self._out.append("\n" if tag == "br" else "")
        elif tag in _HEADINGS:
            self._break(2)
            self._out.append(_HEADINGS[tag])
        elif tag == "li":
            self._open_item()
        elif tag in {"tr", "dt", "dd"}:
            self._break(1)
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"}:
                self._lists.append(0 if tag == "ol" else -1)
            self._break(1 if len(self._lists) > 1 else 2)
        elif tag == "br":
            self._out.append("\n")
        elif tag in {"td", "th"} and not self._is_at_line_start():
            self._out.append(" | ")
        elif tag == "code":
            self._out.append("`")
        elif tag == "a" and attributes.get("href"):
            self._link = (attributes["href"], len(self._out))
        elif tag == "img" and attributes.get("alt", "").strip():
            self._out.append(f"[image: {_SPACE.sub(' ', attributes['alt']).strip()}]")

    def _open_item(self) -> None:
        self._break(1)
        indent = "  " * min(max(len(self._lists) - 1, 0), _MOST_INDENTED)
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            self._out.append(f"{indent}{self._lists[-1]}. ")
        else:
            self._out.append(f"{indent}- ")

    def close(self, tag: str) -> None:
        """End an element."""
        if tag == "pre":
            self._close_preformatted()
        elif self._preformatted:
            return
        elif tag == "code":
            self._out.append("`")
        elif tag == "a":
            self._close_link()
        elif tag in _HEADINGS:
            self._break(2)
        elif tag in _BLOCKS:
            if tag in {"ul", "ol"}:
                self._lists.pop()
            self._break(1 if self._lists else 2)

    def _close_preformatted(self) -> None:
        start = self._preformatted.pop()
        if not self._preformatted:
            code = "".join(self._out[start:]).strip("\n")
            fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
            self._out[start:] = [f"{fence}\n{code}\n{fence}\n\n"] if code.strip() else []

    def _close_link(self) -> None:
        if self._link is None:
            return
        target, start = self._link
        self._link = None
        label = "".join(self._out[start:]).strip()
        if not label or target.startswith(("#", "javascript:", "data:")):
            return
        try:
            address = urljoin(self._base, target)
        except ValueError:
            return
        if label != address:
            self._out.append(f" ({address})")

    def _is_at_line_start(self) -> bool:
        return not self._out or self._out[-1].endswith("\n")

    def _break(self, lines: int) -> None:
        """End the line; two lines make a paragraph. More are taken out at the end."""
        if self._out:
            last = self._out[-1]
            missing = lines - (len(last) - len(last.rstrip("\n")))
            if missing > 0:
                self._out.append("\n" * missing)


_LOCAL_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".intranet", ".corp")


def is_private_name(host: str) -> bool:
    """Whether a host is private by its name or number alone; looks nothing up."""
    host = host.lower().rstrip(".").strip("[]")
    if "." not in host and ":" not in host:
        return True  # localhost, a name of the local network, a number like 2130706433
    if host.endswith(_LOCAL_ENDINGS):
        return True
    last = host.rsplit(".", 1)[-1]
    if ":" in host or last.isdigit() or last.startswith("0x"):
        return is_private_address(host)
    return False


def first_private(addresses: Iterable[str]) -> str:
    """Return the first private address, empty when all are public."""
    return next((address for address in addresses if is_private_address(address)), "")


MAX_BYTES = 5_000_000
_MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEXT_TYPES = re.compile(r"text/|application/(?:[\w.+-]*(?:json|xml|yaml|javascript|ecmascript|toml|x-sh|sql|graphql))")
_META_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


_PRIVATE = "is on this machine or its private network"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `is_cut`: there was more than is taken."""

    url: str
    status: int
    media_type: str
    charset: str
    data: bytes
    is_cut: bool


class FetchTool(BuiltinTool):
    """Reads from the network. Several at a time."""

    name = "fetch"

    def subject(self, arguments: FetchArguments, context: ToolContext) -> ApprovalSubject:
        """Return the address. Nothing is looked up before it is allowed: a look-up tells the name to others."""
        url = _parse(arguments.url)
        host = url.hostname or ""
        private = is_private_name(host) or host in context.private_hosts
        concerns = [f"{host} {_PRIVATE}"] if private else []
        unseen = _unseen(url, context)
        if unseen > MOST_UNSEEN or unseen + context.unseen_sent.get(host, 0) > MOST_UNSEEN_TOGETHER:
            concerns.append(
                f"a stranger's text was read, and this address carries {unseen:,} characters to {host} that stand "
                "nowhere in the conversation"
            )
        return ApprovalSubject(
            kind="network",
            tool=self.name,
            summary=shorten(url.geturl(), 200),
            detail=url.geturl(),
            pattern=_origin(url),
            concerns=tuple(concerns),
        )

    async def run(self, arguments: FetchArguments, context: ToolContext) -> ToolOutput:
        """Fetch it. Raises `ToolError`."""
        limit = context.settings.fetch_timeout
        url = _parse(arguments.url)
        host = url.hostname or ""
        context.unseen_sent[host] = context.unseen_sent.get(host, 0) + _unseen(url, context)
        try:
            async with asyncio.timeout(limit):
                outcome = await _get(url, context)
        except TimeoutError:
            raise ToolError(f"{arguments.url} took longer than {limit:g} s; nothing was fetched.") from None
        if isinstance(outcome, str):
            return ToolOutput.of_text(outcome)
        return await asyncio.to_thread(_show, outcome, arguments.raw, context)


def _parse(address: str) -> SplitResult:
    address = address.strip()
    try:
        url = urlsplit(address if "://" in address else f"https://{address}")
        port = url.port
    except ValueError as error:
        raise ToolError(f"{shorten(address, 200)} is not a usable address: {error}") from None
    if url.scheme not in _PORTS:
        raise ToolError(f"Only http and https can be fetched, not {shorten(url.scheme, 20)}. For files use read.")
    if not url.hostname or port == 0:
        raise ToolError(f"{shorten(address, 200)} names no host.")
    return url._replace(fragment="")


def _unseen(url: SplitResult, context: ToolContext) -> int:
    """Return how many characters of an address nobody has written, once the model has read foreign text."""
    if not any(is_foreign(message) for message in context.view):
        return 0
    seen = [text_of(said.parts) for said in context.view if isinstance(said, UserMessage | ToolResultMessage)]
    return count_unseen(url.geturl(), seen)


def _port(url: SplitResult) -> int:
    return url.port or _PORTS[url.scheme]


def _origin(url: SplitResult) -> str:
    port = f":{url.port}" if url.port not in {None, _PORTS[url.scheme]} else ""
    return f"{url.scheme}://{url.hostname}{port}"


def _is_same_place(first: SplitResult, second: SplitResult) -> bool:
    """Whether a redirect stays with the host that was allowed: same origin, `www.` and the step up to https aside."""
    names = {(url.hostname or "").lower().removeprefix("www.") for url in (first, second)}
    if len(names) > 1:
        return False
    return _port(first) == _port(second) or (_port(first), _port(second)) == (80, 443)


async def _get(url: SplitResult, context: ToolContext) -> Page | str:
    """Return the page, or where it redirects to. Raises `ToolError`."""
    import httpx

    headers = {"User-Agent": f"tenuto/{__version__}", "Accept": "text/html, text/*, application/json, */*;q=0.5"}
    timeout = httpx.Timeout(context.settings.fetch_timeout, connect=_CONNECT_SECONDS)
    try:
        async with httpx.AsyncClient(headers=headers, timeout=timeout, follow_redirects=False) as client:
            for _ in range(_MAX_REDIRECTS):
                outcome = await _get_once(client, url, context)
                if isinstance(outcome, Page):
                    return outcome
                if not _is_same_place(url, outcome):
                    return f"{url.geturl()} redirects to another host: {outcome.geturl()}\nFetch that address to go on."
                url = outcome
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ToolError(f"{url.geturl()} could not be fetched: {str(error) or type(error).__name__}") from None
    raise ToolError(f"{url.geturl()} redirects more than {_MAX_REDIRECTS} times.")


async def _get_once(client: httpx.AsyncClient, url: SplitResult, context: ToolContext) -> Page | SplitResult:
    """Return the page or the address that it redirects to."""
    may_be_private = any(_PRIVATE in concern for concern in context.subject.concerns) if context.subject else False
    checks = not may_be_private and not _uses_proxy(url)
    if checks:
        _refuse_private(url, first_private(await look_up(url.hostname or "", _port(url))), context)

    async def watch(event: str, facts: Mapping[str, Any]) -> None:
        """Look at each connection before anything is sent on it: the name may have changed its address since."""
        if event == "connection.connect_tcp.complete":
            stream = facts["return_value"]
            peer = stream.get_extra_info("server_addr")
            if address := first_private([str(peer[0]) if peer else "(unknown)"]):
                await stream.aclose()
                _refuse_private(url, address, context)

    async with client.stream("GET", url.geturl(), extensions={"trace": watch} if checks else {}) as response:
        location = response.headers.get("location", "")
        if response.status_code in _REDIRECTS and location:
            return _parse(urljoin(url.geturl(), location))
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > MAX_BYTES:
                break
        return Page(
            url=url.geturl(),
            status=response.status_code,
            media_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
            charset=response.charset_encoding or "",
            data=bytes(data[:MAX_BYTES]),
            is_cut=len(data) > MAX_BYTES,
        )


def _refuse_private(url: SplitResult, address: str, context: ToolContext) -> None:
    if address:
        context.private_hosts.add(url.hostname or "")
        raise ToolError(
            f"{url.hostname} has the private address {address}; nothing was fetched. That needs the user's leave: "
            "call fetch again with the same address and they will be asked."
        )


def _uses_proxy(url: SplitResult) -> bool:
    """Whether a proxy of the user's makes the connection: then addresses are its business."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    return bool(proxies.get(url.scheme) or proxies.get("all")) and not proxy_bypass(url.hostname or "")


def _show(page: Page, raw: bool, context: ToolContext) -> ToolOutput:
    head = f"{page.url} · {page.status} · {page.media_type or 'no type'} · {format_size(len(page.data))}"
    if page.is_cut:
        head += f" (only the first {format_size(MAX_BYTES)} were taken)"
    failed = page.status >= 400
    view = PageView(status=page.status, media_type=page.media_type, size=len(page.data), partial=page.is_cut)
    image = image_facts(page.data)
    if image is not None and not page.is_cut and len(page.data) <= MAX_IMAGE_BYTES:
        parts = (TextPart(text=head), context.store_image(page.data, image))
        return ToolOutput(parts=parts, ui=(view,), is_error=failed)
    if page.data and not _is_text(page):
        raise ToolError(f"{head}\nThis is no text. Download it with bash (curl -o FILE) if you need it.")
    text = _decode(page)
    if not raw and ("html" in page.media_type or text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))):
        text = html_to_text(text, page.url)
    return ToolOutput(
        parts=(TextPart(text=f"{head}\n\n{frame(text or '(empty)', PAGE_TAG)}"),), ui=(view,), is_error=failed
    )


def _is_text(page: Page) -> bool:
    if page.media_type and page.media_type != "application/octet-stream":
        return _TEXT_TYPES.match(page.media_type) is not None
    return b"\0" not in page.data[:8192]


def _decode(page: Page) -> str:
    declared = _META_CHARSET.search(page.data[:2048])
    for name in (page.charset, declared[1].decode("ascii") if declared else "", "utf-8"):
        try:
            return page.data.decode(name or "utf-8")
        except (LookupError, UnicodeDecodeError):
            continue
    return page.data.decode("utf-8", "replace")
