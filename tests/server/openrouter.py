"""OpenRouter's login: the page that sends a browser on with a code, and the exchange of the code for a key."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

if TYPE_CHECKING:
    from tests.server.request import Request

OPENROUTER = ("/auth", "/auth/keys")
METHODS = ("S256", "plain")
PAGE = {"callback_url", "code_challenge", "code_challenge_method", "key_label", "workspace_id", "required_workspace_id"}
Answer = tuple[int, dict[str, str], dict[str, Any]]


@dataclass(slots=True)
class OpenRouter:
    """Whoever opens the page agrees at once. A code counts once."""

    key: str
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Challenge and method by code, of those that count."""
    is_expired: bool = False

    def answer(self, request: Request) -> Answer:
        """Return status, headers and body."""
        if request.path == "/auth":
            return self._page(request)
        return self._exchange(request)

    def _page(self, request: Request) -> Answer:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        callback, method = query.get("callback_url", ""), query.get("code_challenge_method", "")
        target = urlsplit(callback)
        is_local = target.scheme == "http" and target.hostname in ("localhost", "127.0.0.1")
        if unknown := query.keys() - PAGE:
            return _refusal(400, f"unknown parameter {min(unknown)}")
        if callback and not (is_local or target.scheme == "https"):
            return _refusal(400, "callback_url must be https, or http on localhost")
        if not callback and "code_challenge" not in query:
            return _refusal(400, "code_challenge is required without callback_url")
        if "code_challenge" in query and (method not in METHODS or len(query["code_challenge"]) < 43):
            return _refusal(400, "Invalid code_challenge_method")
        code = f"auth_code_{len(self.codes) + 1:04d}"
        self.codes[code] = (query.get("code_challenge", ""), method)
        if not callback:
            return 200, {}, {"shown": code}
        mark = "&" if target.query else "?"
        return 302, {"location": f"{callback}{mark}{urlencode({'code': code})}"}, {}

    def _exchange(self, request: Request) -> Answer:
        if request.method != "POST":
            return _refusal(405, "Method Not Allowed")
        body = json.loads(request.raw)
        if "authorization" in request.headers or body.keys() - {"code", "code_verifier", "code_challenge_method"}:
            return _refusal(400, "Bad Request")
        found = self.codes.pop(body.get("code", ""), None)
        if self.is_expired:
            return _refusal(403, "Authorization code expired")
        if found is None:
            return _refusal(403, "Invalid code or code_verifier")
        challenge, method = found
        if body.get("code_challenge_method", "") != method:
            return _refusal(400, "Invalid code_challenge_method")
        verifier = body.get("code_verifier", "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if challenge != {"S256": digest, "plain": verifier, "": ""}[method]:
            return _refusal(403, "Invalid code or code_verifier")
        return 200, {}, {"key": self.key, "user_id": "user_1"}


def _refusal(status: int, message: str) -> Answer:
    return status, {}, {"error": {"code": status, "message": message}}
