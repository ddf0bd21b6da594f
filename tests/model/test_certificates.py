"""Servers whose certificate is not trusted, with real TLS: it is said once what it is and what to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenuto.model.endpoint import Endpoint
from tenuto.model.http.transport import HttpTransport
from tenuto.protocol.model import RETRYABLE, ModelError
from tests.program import TENUTO

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.usefixtures("task_start"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate"),
]


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return certificate and key of a server of that name, signed by itself."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run([*words, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


@asynccontextmanager
async def serving(context: ssl.SSLContext | None) -> AsyncIterator[str]:
    """A server on localhost, secured or not, which wants nothing of anybody; its address as for https."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 0, ssl=context)
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def secured(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@pytest.fixture(params=["direct", "with proxies set"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both pools: ours, and the one that is used where the environment names a proxy for something."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    if request.param != "direct":
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", "localhost")


async def failure(base_url: str) -> ModelError:
    given = Endpoint(provider="openai-chat", kind="openai-chat", base_url=base_url, key="K", key_name="SOME_KEY")
    transport = HttpTransport(given)
    with pytest.raises(ModelError) as caught:
        async for _ in transport.post_stream(f"{base_url}/chat/completions", {}, b"{}"):
            pass
    await transport.close()
    return caught.value


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("name", "is_trusted", "says", "helps"),
    [
        ("localhost", False, "the certificate of localhost is not trusted: self", "set SSL_CERT_FILE to a PEM file"),
        ("models.example", True, "the certificate of localhost is not trusted: Hostname mismatch", "use the name"),
    ],
)
async def test_a_certificate_that_is_not_trusted_is_no_reason_to_try_again(
    name: str, is_trusted: bool, says: str, helps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What no further attempt can change: an unknown signer, another host."""
    certificate, key = make_certificate(tmp_path, name)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with serving(secured(certificate, key)) as base_url:
        error = await failure(base_url)
    assert error.kind not in RETRYABLE
    assert says in str(error) and helps in str(error)


@pytest.mark.usefixtures("way")
async def test_a_server_that_speaks_no_tls_is_said_to_be_one():
    async with serving(None) as base_url:
        error = await failure(base_url)
    assert error.kind not in RETRYABLE
    assert str(error) == "localhost does not speak TLS (is the address to begin with http:// instead of https://?)"


async def test_the_program_does_not_try_again_and_says_what_to_do(tmp_path: Path):
    certificate, key = make_certificate(tmp_path, "localhost")
    keep = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
    environ = {name: value for name, value in os.environ.items() if name.upper() not in keep}
    async with serving(secured(certificate, key)) as base_url:
        environ |= {"OPENAI_API_KEY": "K", "OPENAI_BASE_URL": base_url, "TENUTO_HOME": str(tmp_path / "home")}
        words = ("-p", "hello", "--model", "openai-chat/test")
        child = await asyncio.create_subprocess_exec(
            *TENUTO, *words, cwd=tmp_path, env=environ, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, errors = await child.communicate()
        said = errors.decode()
    assert child.returncode == 1
    assert "the certificate of localhost is not trusted" in said and "SSL_CERT_FILE" in said
    assert "trying again" not in said
