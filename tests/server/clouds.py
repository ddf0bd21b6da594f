"""What clouds put around a protocol: addresses, signatures, tokens, frames. As strict as the real ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.server.item import Refusal

if TYPE_CHECKING:
    from tests.server.request import Request

ROUTES = {
    "bedrock": re.compile(r"/model/(?P<model>[^/]+)/(?P<way>invoke|invoke-with-response-stream)"),
    "vertex": re.compile(
        r"/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/publishers/anthropic/models/(?P<model>[^/]+):"
        r"(?P<way>rawPredict|streamRawPredict)"
    ),
    "azure": re.compile(r"/openai/deployments/(?P<model>[^/]+)/chat/completions"),
}
ACCESS_KEY, SECRET_KEY, REGION = "AKIATESTTESTTEST0001", "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "eu-west-3"
PROJECT, TOKEN, AZURE_KEY, AZURE_VERSION = (
    "my-project",
    "ya29.test-token-0001",
    "azure-key-000001",
    "2025-04-01-preview",
)
VERSIONS = {"bedrock": "2026-10-21", "vertex": "2026-10-21"}
"""What the official SDK says in the body."""


def find_cloud(path: str) -> tuple[str, re.Match[str]] | None:
    """Return whose address a path is, and its parts."""
    for cloud, pattern in ROUTES.items():
        if found := pattern.fullmatch(path):
            return cloud, found
    return None


def check_cloud(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Refuse what the cloud would; return the body as its protocol has it without a cloud."""
    if request.cloud == "azure":
        return _azure(request, body)
    version = VERSIONS[request.cloud]
    if request.cloud == "bedrock":
        check_signature(request)
    elif request.headers.get("authorization") != f"Bearer {TOKEN}":
        raise Refusal("Request had invalid authentication credentials.", status=401)
    if body.get("anthropic_version") != version:
        raise Refusal(f"anthropic_version: Input should be '{version}'")
    if "model" in body:
        raise Refusal("model: Extra inputs are not permitted")
    if request.cloud == "bedrock" and "stream" in body:
        raise Refusal("stream: Extra inputs are not permitted")
    request.headers["anthropic-version"] = version
    if betas := body.get("anthropic_beta"):
        request.headers["anthropic-beta"] = ",".join(betas)
    bare = {key: value for key, value in body.items() if key not in ("anthropic_version", "anthropic_beta")}
    return {"model": request.model, **bare, "stream": "stream" in request.target.lower()}


def _azure(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    if parse_qs(urlsplit(request.target).query).get("api-version") != [AZURE_VERSION]:
        raise Refusal("Resource not found", status=404)
    if request.headers.get("api-key") != AZURE_KEY or "authorization" in request.headers:
        raise Refusal("Access denied due to invalid subscription key or wrong API endpoint.", status=401)
    return body


def check_signature(request: Request) -> None:
    """Compute the signature (version 4) anew from the request as it came."""
    given = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), SignedHeaders=(?P<names>[^,]+), "
        r"Signature=(?P<signature>[0-9a-f]{64})",
        request.headers.get("authorization", ""),
    )
    if given is None:
        raise Refusal("Missing Authentication Token", status=403)
    day, region, service, end = given["scope"].split("/")
    if (given["key"], region, service, end) != (ACCESS_KEY, REGION, "bedrock", "aws4_request"):
        raise Refusal("The security token included in the request is invalid.", status=403)
    names = given["names"].split(";")
    if "host" not in names:
        raise Refusal("'Host' must be a 'SignedHeader' in the AWS Authorization.", status=403)
    parts = urlsplit(request.target)
    lines = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in names)
    canonical = "\n".join(
        (
            request.method,
            quote(parts.path, safe="/~"),
            parts.query,
            lines,
            ";".join(names),
            hashlib.sha256(request.raw).hexdigest(),
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{given['scope']}\n{digest}"
    key = f"AWS4{SECRET_KEY}".encode()
    for step in (day, region, service, end):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    if hmac.new(key, text.encode(), hashlib.sha256).hexdigest() != given["signature"]:
        raise Refusal("The request signature we calculated does not match the signature you provided.", status=403)


def frame(event: bytes) -> bytes:
    """Return a server-sent event of Anthropic's as a frame of Amazon's event stream; an error as an exception."""
    data = event.partition(b"data: ")[2].strip()
    if event.startswith(b"event: error"):
        message = json.loads(data)["error"]["message"]
        headers = {":message-type": "exception", ":exception-type": "serviceUnavailableException"}
        return frame_of({**headers, ":content-type": "application/json"}, json.dumps({"message": message}).encode())
    body = json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abc"}).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame_of(headers, body)


def frame_of(headers: dict[str, str], body: bytes) -> bytes:
    """Return one frame: lengths and their checksum, headers, body, the checksum of it all."""
    packed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(body), len(packed))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + packed + body
    return message + struct.pack(">I", zlib.crc32(message))


def cloud_environ(base_url: str, folder: Path) -> dict[str, str]:
    """The variables that point all three clouds here, with credentials that the server takes."""
    return {
        "TENUTO_PROVIDERS__BEDROCK__BASE_URL": base_url,
        "TENUTO_PROVIDERS__VERTEX__BASE_URL": base_url,
        "AZURE_OPENAI_ENDPOINT": base_url,
        "AZURE_OPENAI_API_KEY": AZURE_KEY,
        "OPENAI_API_VERSION": AZURE_VERSION,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLOUD_ML_REGION": "europe-west1",
        "ANTHROPIC_VERTEX_PROJECT_ID": PROJECT,
        "GOOGLE_APPLICATION_CREDENTIALS": str(write_account(base_url, folder)),
    }


def write_account(base_url: str, folder: Path) -> Path:
    """Write a service account whose tokens this server gives."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "k1",
        "private_key": pem,
        "client_email": "tests@my-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{base_url}/token",
    }
    file = folder / "service-account.json"
    file.write_text(json.dumps(account))
    return file


def give_token(raw: bytes) -> dict[str, Any]:
    """Return a token for a signed assertion."""
    form = parse_qs(raw.decode())
    assertion = form.get("assertion", [""])[0].split(".")
    if form.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"] or len(assertion) != 3:
        raise Refusal("invalid_grant", status=400)
    return {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}


def model_in(found: re.Match[str]) -> str:
    """Return the model that an address names."""
    return unquote(found["model"])
