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
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.server.cloud_keys import (
    ACCESS_KEY,
    AZURE_KEY,
    AZURE_VERSION,
    PROJECT,
    REFRESH_TOKEN,
    REGION,
    SECRET_KEY,
    CloudKeys,
)
from tests.server.gemini_wire import error_object as google_error
from tests.server.item import Refusal

if TYPE_CHECKING:
    from tests.server.request import Request

ROUTES = {
    "bedrock": re.compile(r"/model/(?P<model>[^/]+)/(?P<way>invoke|invoke-with-response-stream)"),
    "vertex": re.compile(
        r"/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/publishers/anthropic/models/(?P<model>[^/]+):"
        r"(?P<way>rawPredict|streamRawPredict)"
    ),
    "azure": re.compile(r"/openai/(?:deployments/(?P<model>[^/]+)/chat/completions|responses)"),
}
DEPLOYMENTS = ("my-deployment", "test")
CHAT_FIELDS = """
audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention
reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature
tool_choice tools top_logprobs top_p user verbosity data_sources
"""
VERSIONS = {"bedrock": "2026-10-21", "vertex": "2026-10-21"}
"""What the official SDK says in the body."""


def find_cloud(path: str) -> tuple[str, re.Match[str]] | None:
    """Return whose address a path is, and its parts."""
    for cloud, pattern in ROUTES.items():
        if found := pattern.fullmatch(path):
            return cloud, found
    return None


def check_cloud(request: Request, body: dict[str, Any], keys: CloudKeys) -> tuple[dict[str, Any], dict[str, str]]:
    """Refuse what the cloud would; return body and headers as the protocol has them without a cloud."""
    if request.cloud == "azure":
        return _azure(request, body, keys), request.headers
    version = VERSIONS[request.cloud]
    if request.cloud == "bedrock":
        check_signature(request, keys)
    elif request.headers.get("authorization") != f"Bearer {keys.token}":
        raise Refusal(
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
            "valid authentication credential.",
            status=401,
        )
    if body.get("anthropic_version") != version:
        raise Refusal(f"anthropic_version: Input should be '{version}'")
    if "model" in body:
        raise Refusal("model: Extra inputs are not permitted")
    if request.cloud == "bedrock" and "stream" in body:
        raise Refusal("stream: Extra inputs are not permitted")
    if request.cloud == "vertex" and bool(body.get("stream")) != ("stream" in request.target):
        raise Refusal("stream: does not fit the method of the address")
    if "x-api-key" in request.headers:
        raise Refusal("x-api-key: a key of Anthropic's is not for others", status=403)
    headers = {**request.headers, "anthropic-version": version}
    if betas := body.get("anthropic_beta"):
        if not isinstance(betas, list):
            raise Refusal("anthropic_beta: Input should be a valid list")
        headers["anthropic-beta"] = ",".join(betas)
    bare = {key: value for key, value in body.items() if key not in ("anthropic_version", "anthropic_beta")}
    return {"model": request.model, **bare, "stream": "stream" in request.target.lower()}, headers


def _azure(request: Request, body: dict[str, Any], keys: CloudKeys) -> dict[str, Any]:
    if parse_qs(urlsplit(request.target).query).get("api-version") != [AZURE_VERSION]:
        raise Refusal("Resource not found", status=404)
    given, bearer = request.headers.get("api-key"), request.headers.get("authorization")
    if keys.azure_token and (bearer != f"Bearer {keys.azure_token}" or given):
        raise Refusal(
            "Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have "
            "expired.",
            status=401,
            code="Unauthorized",
        )
    if not keys.azure_token and (given != keys.azure_key or bearer):
        raise Refusal(
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key "
            "for an active subscription and use a correct regional API endpoint for your resource.",
            status=401,
        )
    request.model = request.model or str(body.get("model", ""))
    if request.model not in DEPLOYMENTS:
        raise Refusal(
            "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
            "minutes, please wait a moment and try again.",
            status=404,
            code="DeploymentNotFound",
        )
    for name in body:
        if request.path.endswith("/chat/completions") and name not in CHAT_FIELDS.split():
            raise Refusal(f"Unrecognized request argument supplied: {name}")
    return body


def error_object(
    cloud: str, wire: ModuleType, status: int, message: str, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return the body of an HTTP error as the cloud has it, or as the protocol has it without one."""
    match cloud:
        case "bedrock":
            return {"message": message}
        case "vertex" if status in (401, 403, 404):
            return google_error(status, message)
        case "azure" if status in (401, 404, 429):
            return {"error": {"code": code or str(status), "message": message}}
        case _:
            return wire.error_object(status, message, code, param)


def check_signature(request: Request, keys: CloudKeys) -> None:
    """Compute the signature (version 4) anew from the request as it came."""
    given = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), SignedHeaders=(?P<names>[^,]+), "
        r"Signature=(?P<signature>[0-9a-f]{64})",
        request.headers.get("authorization", ""),
    )
    if given is None:
        raise Refusal("Missing Authentication Token", status=403)
    day, region, service, end = given["scope"].split("/")
    if given["key"] in keys.given and given["key"] != keys.access_key:
        raise Refusal("The security token included in the request is expired", status=403)
    if (given["key"], region, service, end) != (keys.access_key, REGION, "bedrock", "aws4_request"):
        raise Refusal("The security token included in the request is invalid.", status=403)
    names = given["names"].split(";")
    if "host" not in names:
        raise Refusal("'Host' must be a 'SignedHeader' in the AWS Authorization.", status=403)
    if request.headers.get("x-amz-security-token", "") != keys.session_token:
        raise Refusal("The security token included in the request is invalid.", status=403)
    if keys.session_token and "x-amz-security-token" not in names:
        raise Refusal("'x-amz-security-token' must be signed.", status=403)
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
    key = f"AWS4{keys.secret_key}".encode()
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


def give_token(raw: bytes, keys: CloudKeys) -> dict[str, Any]:
    """Return a token for a signed assertion, or for what a user's login left behind."""
    form = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
    assertion = form.get("assertion", "").split(".")
    by_account = form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" and len(assertion) == 3
    by_user = form.get("grant_type") == "refresh_token" and form.get("refresh_token") == REFRESH_TOKEN
    if not (by_account or by_user):
        raise Refusal("invalid_grant", status=400)
    keys.given.append(keys.token)
    return {"access_token": keys.token, "expires_in": keys.token_seconds, "token_type": "Bearer"}


def give_aws_keys(keys: CloudKeys) -> dict[str, Any]:
    """Return Amazon's keys as the endpoint of a container does."""
    keys.given.append(keys.access_key)
    return {
        "AccessKeyId": keys.access_key,
        "SecretAccessKey": keys.secret_key,
        "Token": keys.session_token,
        "Expiration": keys.expiration,
    }


def model_in(found: re.Match[str]) -> str:
    """Return the model that an address names; empty where it stands in the body."""
    return unquote(found["model"] or "")
