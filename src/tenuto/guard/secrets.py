"""Secrets: values that are never written down, and texts that look like one.

Two kinds. A *known* secret is a value that this process was given: a provider's key, a secret variable of the
environment, the credentials in a URL. It is masked wherever text leaves the program: log, stored outputs, events,
standard output and error, exports. A *likely* secret is a text of a well-known shape (`sk-…`, `AKIA…`, `ghp_…`, a
private key). It is masked where it is shown or exported, and sent as it is unless a setting says otherwise: the user
may be working on that very file.

What a mask says is the flag: the name of the variable, or what the text looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from tenuto.text.writable import to_json

Value = TypeVar("Value")
SECRET_NAME = "(?i)KEY|TOKEN|SECRET|PASSW|CREDENTIAL"
"""Variables with such a name are not handed on to commands."""
SHORTEST = 8
"""Characters of the shortest value that counts as a secret: a shorter one stands in harmless words as well."""
_HARMLESS = r"/[^\s:]*|[A-Za-z_-]{1,24}|[\d_.,]{1,12}"
"""Values under a secret name that are none: a path, words, a number (`SSH_KEY_PATH`, `lm-studio`, `MAX_TOKENS`)."""
_URL_PASSWORD = r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#@:]*:([^\s/?#]+)@"
_ANY = "surrogatepass"
"""Texts of files and terminals hold lone surrogates: they come back as they were."""
_MASK = "[masked: {}]"
MASK = r"\[masked: [A-Za-z0-9_ ./-]{1,80}\]"
"""How a mask looks in a text."""
_NO_NAME = r"[^A-Za-z0-9_ ./-]"


class Secrets:
    """The known secrets of a process. Masking leaves a text that holds none as the very same object."""

    def __init__(self) -> None:
        self._masks: dict[bytes, bytes] = {}
        self._pattern: re.Pattern[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self._masks)

    def learn(self, name: str, value: str) -> None:
        """Have `value` masked from now on as `[masked: name]`. A short one, a path, a word or a number is no secret."""
        value = value.strip()
        if len(value) < SHORTEST or re.fullmatch(_HARMLESS, value):
            return
        mask = _MASK.format(re.sub(_NO_NAME, "", name)[:80] or "secret").encode()
        for form in _forms(value):
            self._masks.setdefault(form, mask)
        self._pattern = None

    def learn_environment(self, environ: Mapping[str, str]) -> None:
        """Learn every variable whose name and value say that it is secret, and the passwords of proxies and others."""
        for name, value in environ.items():
            if re.search(SECRET_NAME, name):
                self.learn(name, value)
            elif "@" in value:
                self.learn_url(f"password in {name}", value)

    def learn_url(self, name: str, url: str) -> None:
        """Learn the password of a URL like `https://user:password@host`."""
        if found := re.match(_URL_PASSWORD, url):
            self.learn(name, found[1])

    def holds(self, value: str) -> bool:
        """Whether `value` is a known secret, and nothing else."""
        return value.strip().encode("utf-8", _ANY) in self._masks

    def mask(self, text: str) -> str:
        """Return `text` without known secrets."""
        if not self._masks:
            return text
        data = text.encode("utf-8", _ANY)
        masked = self.mask_bytes(data)
        return text if masked is data else masked.decode("utf-8", _ANY)

    def mask_bytes(self, data: bytes) -> bytes:
        """Return bytes of a text or of a line of JSON without known secrets."""
        if not self._masks or self._known().search(data) is None:
            return data
        return self._known().sub(self._replace, data)

    def held_back(self, data: bytes) -> int:
        """Return how many bytes at the end of a stream's data may be the beginning of a known secret."""
        longest = max(map(len, self._masks), default=1) - 1
        end = data[-longest:] if longest else b""
        return max((_overlap(end, value) for value in self._masks), default=0)

    def _known(self) -> re.Pattern[bytes]:
        if self._pattern is None:
            longest_first = sorted(self._masks, key=len, reverse=True)
            self._pattern = re.compile(b"|".join(map(re.escape, longest_first)))
        return self._pattern

    def _replace(self, found: re.Match[bytes]) -> bytes:
        return self._masks[found[0]]


def _overlap(end: bytes, value: bytes) -> int:
    """Return the length of the longest end of `end` that begins `value` and is not all of it."""
    most = min(len(end), len(value) - 1)
    return next((size for size in range(most, 0, -1) if value.startswith(end[len(end) - size :])), 0)


def _forms(value: str) -> Iterable[bytes]:
    """Yield how a value can stand in texts: as it is, in JSON, in a URL."""
    import json
    from urllib.parse import quote

    forms = (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""))
    return dict.fromkeys(form.encode("utf-8", _ANY) for form in forms)


KNOWN = Secrets()
"""The secrets of this process: whoever reads a key has it masked here."""


@cache
def hide_memory() -> None:
    """Let no other process of the user read this one's memory and environment, where the system can do that (S22).

    A command that was started without a key could else read it in `/proc/PID/environ` of the program that started it.
    """
    import sys

    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


_PR_SET_DUMPABLE = 4


def mask_secrets(text: str) -> str:
    """Return `text` without known secrets and without what looks like one."""
    return mask_likely(KNOWN.mask(text))


def masked_copy(value: Value, mask: Callable[[str], str]) -> Value:
    """Return a struct with every text in it masked; the very same where nothing had to be."""
    import msgspec

    line = to_json(value).decode()
    masked = mask(line)
    return value if masked is line or masked == line else cast("Any", msgspec.json.decode(masked, type=type(value)))


def command_environment(environ: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """Return what a command of the model may see: the variables in `passed`, and all that are not secret.

    Secret is what the name says, and a provider's key whatever its variable is called.
    """
    allowed = frozenset(passed)
    return {
        name: value
        for name, value in environ.items()
        if name in allowed or not (re.search(SECRET_NAME, name) or KNOWN.holds(value))
    }


def new_masks(before: str, after: str) -> list[str]:
    """Return the masks in `after` that `before` lacks: who writes that to a file would lose the secret itself."""
    return sorted(set(re.findall(MASK, after)) - set(re.findall(MASK, before))) if "[masked: " in after else []


_LIKELY = (
    (
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,2}PRIVATE KEY-----[^\"]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=\"|\Z))",
    ),
    ("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("API key", r"sk-(?:proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("AWS key", r"(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("GitHub token", r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("GitLab token", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google key", r"AIza[A-Za-z0-9_-]{35}"),
    ("npm token", r"npm_[A-Za-z0-9]{36}\b"),
    ("Stripe key", r"[rs]k_live_[A-Za-z0-9]{20,}"),
)
"""What a secret looks like: the prefixes that its issuer documents."""
_MARKS = (
    "sk-",
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "AIza",
    "npm_",
    "k_live_",
    "PRIVATE KEY",
)
"""One of these stands in each of them: a look for a few letters costs next to nothing."""
_BEGIN = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))"
"""No letter stands before it, but for that of an escape in JSON."""
_WITH_DIGIT = frozenset({"API key"})
"""Shapes that ordinary words with hyphens have too: there a digit must be among the characters."""


def mask_likely(text: str) -> str:
    """Return `text` with everything that looks like a secret replaced by what it looks like; often the same object."""
    if not any(mark in text for mark in _MARKS):
        return text
    for what, pattern in _LIKELY:
        text = re.sub(_BEGIN + pattern, lambda found, what=what: _mask_one(found[0], what), text)
    return text


def _mask_one(found: str, what: str) -> str:
    if what in _WITH_DIGIT and not any(character.isdigit() for character in found):
        return found
    return _MASK.format(f"looks like a{'n' if what[0] in 'A' else ''} {what}")
