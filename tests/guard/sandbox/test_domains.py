"""The domains that a user lists: what a command reaches by them, and what it does not, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.sandbox.network.domains import read_domains, usable_addresses, why_refused
from tenuto.guard.sandbox.network.proxy import DomainProxy
from tenuto.guard.sandbox.network.requests import RequestError, read_request
from tests.guard.sandbox.places import places
from tests.guard.sandbox.test_network import need_shared

pytestmark = pytest.mark.matrix
BODY = b"x" * 300_000
HOSTS = {"good.test": "127.0.0.1", "evil.test": "127.0.0.1", "inner.test": "127.0.0.1", "both.test": "127.0.0.1"}


class Origin:
    """A server: `/` answers, `/away` redirects, `/endless` never ends; notes heads, and what is open."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.open = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if b"chunked" in head:
                self.bodies.append(await reader.readuntil(b"0\r\n\r\n"))
            path = head.split()[1]
            if path == b"/away":
                location = b"http://evil.test:%d/" % self.port
                writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
            elif path == b"/garbage":
                writer.write(b"no http at all\r\n\r\n")
            elif path == b"/endless":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    writer.write(b"y" * 10_000)
                    await writer.drain()
            else:
                keeps = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n" % len(BODY)
                writer.write(keeps + BODY)
            await writer.drain()
        except (OSError, EOFError):
            return
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Origin]:
    origin = Origin()
    server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=context)
    origin.port = server.sockets[0].getsockname()[1]
    try:
        yield origin
    finally:
        server.close()


@asynccontextmanager
async def proxying(*entries: str, upstream: str = "", hosts: dict[str, str] = HOSTS) -> AsyncIterator[DomainProxy]:
    """A proxy on a port of this machine's own; names are looked up in `hosts`."""

    async def find(host: str, _port: int) -> list[str]:
        if host not in hosts:
            raise OSError("no such name")
        return hosts[host].split()

    listener = socket.create_server(("127.0.0.1", 0))
    proxy = DomainProxy(read_domains(entries), listener, find=find, upstream=lambda _scheme, _host: upstream)
    proxy.address = listener.getsockname()  # type: ignore[attr-defined]
    try:
        yield proxy
    finally:
        proxy.close()
        await asyncio.sleep(0)
        listener.close()


async def ask(proxy: DomainProxy, data: bytes) -> bytes:
    """Send bytes and return all that comes back."""
    reader, writer = await asyncio.open_connection(*proxy.address)  # type: ignore[attr-defined]
    try:
        writer.write(data)
        async with asyncio.timeout(20):
            return await reader.read(-1)
    finally:
        writer.close()


def get(address: str, *fields: str) -> bytes:
    return "\r\n".join((f"GET {address} HTTP/1.1", "Host: elsewhere.test", *fields, "", "")).encode()


async def test_a_listed_name_is_reached_and_what_is_sent_is_written_anew():
    async with serving() as origin, proxying(f"good.test:{origin.port}", f"127.0.0.1:{origin.port}") as proxy:
        fields = ("Proxy-Authorization: Basic eA==", "Connection: keep-alive, X-Own", "X-Own: a", "X-Kept: b")
        answer = await ask(proxy, get(f"http://GOOD.test.:{origin.port}/a?b=c", *fields))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert body == BODY
        assert head.count(b"Connection: ") == 1
        assert b"Connection: close" in head, "a client must not ask for another host on the same connection"
        (sent,) = origin.heads
        assert sent == (
            b"GET /a?b=c HTTP/1.1\r\nHost: good.test:%d\r\nX-Kept: b\r\nConnection: close\r\n\r\n" % origin.port
        )
        assert proxy.refusals == 0


async def test_a_tunnel_carries_bytes_both_ways():
    async with serving() as origin, proxying(f"good.test:{origin.port}", f"127.0.0.1:{origin.port}") as proxy:
        connect = f"CONNECT good.test:{origin.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        answer = await ask(proxy, connect + b"GET / HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert answer.endswith(BODY)


REFUSED = {
    "another name": ("http://evil.test:{port}/", "evil.test is not in sandbox.domains"),
    "a name that ends so": ("http://notgood.test:{port}/", "notgood.test is not in sandbox.domains"),
    "a name below": ("http://a.good.test:{port}/", "a.good.test is not in sandbox.domains"),
    "an address": ("http://127.0.0.2:{port}/", "127.0.0.2 is not in sandbox.domains"),
    "an address as a number": ("http://2130706433:{port}/", "2130706433 is not in sandbox.domains"),
    "an address of six": ("http://[::1]:{port}/", "::1 is not in sandbox.domains"),
    "the usual port": ("http://good.test/", "port 80 of good.test is not in sandbox.domains"),
    "a tunnel to ssh": ("good.test:22", "port 22 of good.test is not in sandbox.domains"),
    "a tunnel elsewhere": ("evil.test:443", "evil.test is not in sandbox.domains"),
    "the apex of a wildcard": ("wide.test:443", "wide.test is not in sandbox.domains"),
    "a wildcard's ssh": ("a.wide.test:22", "port 22 of a.wide.test is not in sandbox.domains"),
    "a name that leads here": ("inner.test:443", "inner.test has the private address 127.0.0.1"),
    "a name that leads to the metadata": ("meta.test:443", "meta.test has the private address 169.254.169.254"),
    "a name that leads to a mapped address": ("mapped.test:80", "mapped.test has the private address ::ffff:10.0.0.1"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_not_listed_is_refused_with_one_clear_line(name):
    address, said = REFUSED[name]
    hosts = {**HOSTS, "meta.test": "169.254.169.254", "mapped.test": "::ffff:10.0.0.1"}
    async with serving() as origin:
        listed = (f"good.test:{origin.port}", "inner.test", "meta.test", "mapped.test", "*.wide.test")
        async with proxying(*listed, hosts=hosts) as proxy:
            address = address.format(port=origin.port)
            is_tunnel = "//" not in address
            answer = await ask(proxy, f"CONNECT {address} HTTP/1.1\r\n\r\n".encode() if is_tunnel else get(address))
            assert answer.startswith(f"HTTP/1.1 403 {said}".encode())
            assert answer.endswith(b"\n")
            assert said in proxy.refused_since(0)[0]
            assert origin.heads == []
            assert origin.open == 0


async def test_a_name_with_a_public_and_a_private_address_is_reached_at_the_public_one_alone():
    domains = read_domains(["both.test", "10.0.0.7:5432"])
    assert usable_addresses(domains, ["127.0.0.1", "93.184.216.34", "10.0.0.7"], 443) == ["93.184.216.34"]
    assert usable_addresses(domains, ["127.0.0.1", "10.0.0.7"], 5432) == ["10.0.0.7"]
    assert why_refused(domains, "10.0.0.7", 5432) == ""


GARBAGE = {
    "no request": b"\x16\x03\x01 hello\r\n\r\n",
    "an own path": b"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n",
    "https": b"GET https://good.test/ HTTP/1.1\r\n\r\n",
    "a user": b"GET http://good.test@evil.test/ HTTP/1.1\r\n\r\n",
    "two targets": b"GET http://good.test/ http://evil.test/ HTTP/1.1\r\n\r\n",
    "a bare line feed": b"GET http://good.test/ HTTP/1.1\r\nA: b\nHost: evil.test\r\n\r\n",
    "a folded field": b"GET http://good.test/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
    "a space before the colon": b"GET http://good.test/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
    "a NUL": b"GET http://good.test\0.evil.test/ HTTP/1.1\r\n\r\n",
    "no port": b"CONNECT good.test HTTP/1.1\r\n\r\n",
    "a port that is none": b"CONNECT good.test:99999 HTTP/1.1\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\n",
    "too long": b"GET http://good.test/ HTTP/1.1\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_answered_and_goes_nowhere(name):
    async with serving() as origin, proxying("good.test", f"127.0.0.1:{origin.port}") as proxy:
        with contextlib.suppress(ConnectionResetError):  # what was not read is thrown away
            answer = await ask(proxy, GARBAGE[name])
            assert answer[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 431"}
        assert origin.heads == []
        assert (await ask(proxy, b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403"), "it goes on"


async def test_a_chunked_body_arrives_and_an_answer_that_is_none_is_told():
    async with serving() as origin, proxying(f"good.test:{origin.port}", f"127.0.0.1:{origin.port}") as proxy:
        head = f"POST http://good.test:{origin.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        answer = await ask(proxy, head + b"5\r\nabcde\r\n0\r\n\r\n")
        assert answer.endswith(BODY)
        assert origin.bodies == [b"5\r\nabcde\r\n0\r\n\r\n"]
        answer = await ask(proxy, get(f"http://good.test:{origin.port}/garbage"))
        assert answer.startswith(b"HTTP/1.1 502")


async def test_what_cannot_be_reached_is_told_and_is_no_refusal():
    async with proxying("gone.test", "good.test:1", "127.0.0.1:1") as proxy:
        assert (await ask(proxy, get("http://gone.test/"))).startswith(b"HTTP/1.1 502 gone.test cannot be reached")
        assert (await ask(proxy, get("http://good.test:1/"))).startswith(b"HTTP/1.1 502 good.test cannot be reached")
        assert proxy.refusals == 0


@pytest.mark.parametrize("tunnel", [False, True])
async def test_a_transfer_that_is_broken_off_leaves_nothing(tunnel):
    async with serving() as origin, proxying(f"good.test:{origin.port}", f"127.0.0.1:{origin.port}") as proxy:
        reader, writer = await asyncio.open_connection(*proxy.address)  # type: ignore[attr-defined]
        if tunnel:
            writer.write(f"CONNECT good.test:{origin.port} HTTP/1.1\r\n\r\nGET /endless HTTP/1.1\r\n\r\n".encode())
        else:
            writer.write(get(f"http://good.test:{origin.port}/endless"))
        await reader.readexactly(100_000)
        assert origin.open == 1
        writer.transport.abort()
        async with asyncio.timeout(20):
            while origin.open or proxy._tasks:
                await asyncio.sleep(0.02)


async def test_closing_breaks_off_what_runs():
    async with serving() as origin:
        async with proxying(f"good.test:{origin.port}", f"127.0.0.1:{origin.port}") as proxy:
            reader, writer = await asyncio.open_connection(*proxy.address)  # type: ignore[attr-defined]
            writer.write(get(f"http://good.test:{origin.port}/endless"))
            await reader.readexactly(1000)
        async with asyncio.timeout(20):
            while origin.open:
                await asyncio.sleep(0.02)
        writer.close()


async def test_the_users_own_proxy_is_gone_through_and_asked_for_listed_names_only():
    """The second proxy stands for the user's: it looks names up, the first one does not."""
    async with serving() as origin:
        port = origin.port
        async with proxying(f"good.test:{port}", f"127.0.0.1:{port}") as theirs:
            address = f"http://me:word@127.0.0.1:{theirs.address[1]}"  # type: ignore[attr-defined]
            async with proxying(f"good.test:{port}", f"evil.test:{port}", upstream=address, hosts={}) as proxy:
                assert (await ask(proxy, get(f"http://good.test:{port}/"))).endswith(BODY)
                connect = f"CONNECT good.test:{port} HTTP/1.1\r\n\r\n".encode()
                assert (await ask(proxy, connect + b"GET / HTTP/1.1\r\n\r\n")).endswith(BODY)
                assert theirs.refusals == 0
                said = await ask(proxy, f"CONNECT evil.test:{port} HTTP/1.1\r\n\r\n".encode())
                assert said.startswith(b"HTTP/1.1 502 evil.test cannot be reached: your own proxy answers 403")
                assert (await ask(proxy, get("http://other.test/"))).startswith(b"HTTP/1.1 403")
                assert theirs.refusals == 1


async def test_a_proxy_that_is_none_for_http_is_named():
    async with proxying("good.test", upstream="socks5://127.0.0.1:1") as proxy:
        answer = await ask(proxy, get("http://good.test/"))
        assert b"your own proxy is not one for HTTP (socks5)" in answer


@given(st.binary(max_size=300))
def test_no_head_breaks_the_reading(data):
    with contextlib.suppress(RequestError):
        request = read_request(b"GET http://good.test/" + data + b"\r\n\r\n")
        assert request.head().count(b"\r\n\r\n") == 1
        assert all(b"\n" not in line and b"\0" not in line for line in request.head().split(b"\r\n"))


NAMES = st.from_regex(r"[a-z0-9-]{1,8}(\.[a-z0-9-]{1,8}){0,4}", fullmatch=True)


@given(NAMES, NAMES, st.sampled_from([22, 80, 443, 8443]))
def test_a_wildcard_covers_what_is_below_it_and_an_entry_itself(listed, host, port):
    usual = port in {80, 443}
    below = host.endswith("." + listed)
    assert (why_refused(read_domains([f"*.{listed}"]), host, port) == "") is (below and usual)
    assert (why_refused(read_domains([listed]), host, port) == "") is (host == listed and usual)
    assert (why_refused(read_domains([f"{listed}:{port}"]), listed, port) == "") is True


# --- in the sandbox ---

DIRECT = "curl -sS --max-time 20 --noproxy '' "


def need_curl() -> None:
    need_shared()
    if shutil.which("curl") is None:
        pytest.skip("needs curl")


async def test_commands_reach_what_is_listed_and_the_model_is_told_what_was_blocked():
    need_curl()
    async with serving() as origin:
        address = f"127.0.0.1:{origin.port}"
        with places("bubblewrap", domains=(address,)) as made:
            result, text = await made.run(f"{DIRECT} http://{address}/ | wc -c")
            assert not result.is_error, text
            assert str(len(BODY)) in text
            assert "sandbox" not in text
            result, text = await made.run(f"{DIRECT} -L http://{address}/away")
            assert "network: evil.test is not in sandbox.domains" in text, "a redirect to what is not listed"
            result, text = await made.run(f"curl -sS http://{address}/")
            assert result.is_error, "without the proxy there is nothing"
            result, text = await made.run("curl -sS https://example.com/")
            assert result.is_error
            assert "[The sandbox blocked this: network: example.com is not in sandbox.domains." in text
            assert "outside" in text
            _, text = await made.run("true")
            assert "example.com" not in text, "each is told once"
            assert len(origin.heads) == 2


async def test_what_a_job_was_refused_is_told_when_it_has_ended():
    need_curl()
    with places("bubblewrap", domains=("example.org",)) as made:
        line = "sleep 1; curl -sS http://example.com/; sleep 0.1"
        await made.bench.call("bash", command=line, background=True)
        (job,) = made.bench.context.jobs.all()
        async with asyncio.timeout(20):
            while job.is_running or not job.remarks:
                await asyncio.sleep(0.02)
        assert "network: example.com is not in sandbox.domains" in job.describe()


async def test_https_goes_through_unread(tmp_path):
    need_curl()
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    async with serving(context) as origin:
        with places("bubblewrap", domains=(f"127.0.0.1:{origin.port}",)) as made:
            shutil.copy(certificate, made.work / "certificate.pem")
            line = f"{DIRECT} --cacert certificate.pem https://127.0.0.1:{origin.port}/ | wc -c"
            result, text = await made.run(line)
            assert not result.is_error, text
            assert str(len(BODY)) in text


async def test_without_a_list_there_is_no_proxy():
    need_shared()
    with places("bubblewrap") as made:
        _, text = await made.run("env | grep -i 'https*_proxy=http://127.0.0.1'; cat /proc/net/tcp | wc -l")
        assert text.split()[0] == "1"


@pytest.mark.parametrize("entry", ["*", "*.org", "http://example.org", "a b", "example.org/x", "*.*.org", "a:b", ""])
def test_an_entry_that_is_no_domain_is_named(entry, tmp_path):
    from tenuto.config.sources import load_settings

    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text(f'[sandbox]\ndomains = ["{entry}"]\n')
    settings, problems = load_settings(home, tmp_path, {})[:2]
    assert settings.sandbox.domains == ()
    assert any("sandbox.domains" in str(problem) for problem in problems)


@pytest.mark.parametrize(
    "entry", ["example.org", "*.example.org", "example.org:8443", "localhost:8000", "10.0.0.5", "[fd00::5]:443"]
)
def test_an_entry_that_is_one_is_read(entry, tmp_path):
    from tenuto.config.sources import load_settings

    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.toml").write_text(f'[sandbox]\ndomains = ["{entry}"]\n')
    assert load_settings(home, tmp_path, {})[0].sandbox.domains == (entry,)
    (domain,) = read_domains([entry])
    host = domain.host if not domain.is_below else f"a.{domain.host}"
    assert why_refused([domain], host, domain.port or 443) == ""


def test_a_project_cannot_list_any(tmp_path):
    from tenuto.config.sources import load_settings

    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    (work / ".tenuto").mkdir(parents=True)
    (work / ".tenuto" / "settings.toml").write_text('[sandbox]\ndomains = ["example.org"]\n')
    settings, problems = load_settings(tmp_path / "home", work, {})[:2]
    assert settings.sandbox.domains == ()
    assert any("sandbox" in str(problem) for problem in problems)
