"""The `fetch` tool: one page or file over http(s), bounded in size and time."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import shorten
from tenuto.tool.html_text import html_to_text
from tenuto.tool.image import MAX_IMAGE_BYTES, image_facts
from tenuto.tool.output import ToolOutput, format_size
from tenuto.tool.run.base import BuiltinTool, ToolError
from tenuto.tool.run.context import ToolContext
from tenuto.version import __version__

if TYPE_CHECKING:
    import httpx

    from tenuto.tool.run.arguments import FetchArguments


_LOCAL_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".intranet", ".corp")


def is_private_address(address: str) -> bool:
    """Whether an address is anything but a public one; what cannot be read counts as private."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is not None:
            return is_private_address(str(inner))
    return not parsed.is_global or parsed.is_multicast


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


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    facts = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in facts))


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
        return ApprovalSubject(
            kind="network",
            tool=self.name,
            summary=shorten(url.geturl(), 200),
            detail=url.geturl(),
            pattern=_origin(url),
            concerns=(f"{host} is on this machine or its private network",) if private else (),
        )

    async def run(self, arguments: FetchArguments, context: ToolContext) -> ToolOutput:
        """Fetch it. Raises `ToolError`."""
        limit = context.settings.fetch_timeout
        try:
            async with asyncio.timeout(limit):
                outcome = await _get(_parse(arguments.url), context)
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
    may_be_private = bool(context.subject and context.subject.concerns)
    checks = not may_be_private and not _uses_proxy(url)
    if checks:
        _refuse_private(url, first_private(await look_up(url.hostname or "", _port(url))), context)
    async with client.stream("GET", url.geturl()) as response:
        stream = response.extensions.get("network_stream")
        peer = stream.get_extra_info("server_addr") if checks and stream is not None else None
        if peer and is_private_address(str(peer[0])):  # the name changed its address between look-up and connection
            _refuse_private(url, str(peer[0]), context)
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
    image = image_facts(page.data)
    if image is not None and not page.is_cut and len(page.data) <= MAX_IMAGE_BYTES:
        return ToolOutput(parts=(TextPart(text=head), context.store_image(page.data, image)), is_error=failed)
    if page.data and not _is_text(page):
        raise ToolError(f"{head}\nThis is no text. Download it with bash (curl -o FILE) if you need it.")
    text = _decode(page)
    if not raw and ("html" in page.media_type or text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))):
        text = html_to_text(text, page.url)
    return ToolOutput(parts=(TextPart(text=f"{head}\n\n{text or '(empty)'}"),), is_error=failed)


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
