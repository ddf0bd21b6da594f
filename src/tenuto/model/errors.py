"""Telling what went wrong from a provider's words (DESIGN section 7, R-017 to R-023, R-029).

`classify` is the only place that knows. What is *not* an overflow is looked for first: limits by the minute, money,
a refused `max_tokens`, one oversized item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import ceil
from time import time
from typing import Any
from urllib.parse import urljoin

from tenuto.guard.terminal import sanitize_line
from tenuto.model import error_text as grammar
from tenuto.model import error_text as words
from tenuto.model.endpoint import Endpoint
from tenuto.model.error_text import Said, read_error, read_error_object
from tenuto.protocol.model import MAX_RETRY_AFTER, ErrorKind, ModelError
from tenuto.text.bounding import shorten

MIN_WINDOW = 256
"""A smaller number in an error text is not a window, in tokens."""
MIN_ROOM = 1_024
"""When lowering the output would leave less than this, in tokens, the conversation is too long."""
LARGE_OUTPUT_DIVISOR = 4
"""Of the window: an output from this part on is what to lower, where nobody says how long the input is."""
MAX_ADDRESS = 300
"""Characters of an address in a message."""
MAX_DIGITS = 18
MAX_WAIT = 366 * 86_400.0
"""Seconds: a longer `Retry-After` counts as this."""
_SECONDS = re.compile(r"\d+(?:\.\d*)?", re.ASCII)
_NO_BODY = re.compile(r"^\s*(?:error:?\s*)?(\d{3})?\s*(?:status code)?\s*\(no body\)\s*$", re.IGNORECASE)


def classify(provider: str, status: int | None, text: str, *, retry_after: float | None = None) -> ModelError:
    """Return the error that an HTTP status (`None`: none was sent) and a body, or any error text, stand for.

    `retry_after` is seconds from the response's headers.
    """
    bare = _NO_BODY.match(text)
    if bare or not text.strip():
        stated = int(bare[1]) if bare and bare[1] else None
        return _bare_error(provider, status or stated, retry_after)
    return _judge(provider, status, read_error(text), retry_after)


def classify_object(provider: str, value: Any, status: int | None = None) -> ModelError:
    """Return the error that a JSON error object inside a stream stands for."""
    said = read_error_object(value)
    if not said.messages and not said.codes:
        return ModelError("server", f"{provider} reported an error without saying which", status=status)
    return _judge(provider, status, said, None)


def _bare_error(provider: str, status: int | None, retry_after: float | None) -> ModelError:
    """An error without a body: 400 and 413 may be an overflow, the caller decides by its estimate (R-020)."""
    text = f"{provider} answered {status or 'with an error'} and no explanation"
    kind: ErrorKind = "ambiguous" if status in {400, 413} else _kind_by_status(status)
    return ModelError(kind, text, status=status, retry_after=retry_after)


def _judge(provider: str, status: int | None, said: Said, retry_after: float | None) -> ModelError:
    text = said.all_text  # in the form of `error_grammar.normal()`
    if status is None or status < 400:
        status = said.status or status
    kind, observed, limit = _decide(status, said, text)
    wait = retry_after if retry_after is not None else _bounded(said.retry_after)
    if wait is None:
        wait = _stated_wait(text)
    return ModelError(
        kind,
        said.shown or f"{provider} answered {status}",
        status=status,
        observed=observed,
        limit=limit,
        retry_after=wait if kind in {"rate_limit", "overloaded", "server", "quota"} else None,
        hint=_hint(kind, observed, limit, wait),
        param=said.param,
    )


Verdict = tuple[ErrorKind, int | None, int | None]
"""Kind, observed and limit, both in tokens."""


def _decide(status: int | None, said: Said, text: str) -> Verdict:
    """Return kind, observed and limit. The order is the rule: exclusions, then sizes, then the rest."""
    allowance = words.RATE_SIZE.search(text)
    if allowance and (words.RATE.search(text) or status == 429):
        limit, requested = _int(allowance[1]), _int(allowance[2])
        if requested > limit:
            return "request_too_large_for_rate", requested, limit
        return "rate_limit", None, None
    budget = _output_budget(text)
    if budget is not None:
        return budget
    coded = bool(said.codes & words.OVERFLOW_CODES)
    if not coded:
        excluded = _excluded(status, text)
        if excluded is not None:
            return excluded, None, None
    if coded or _is_overflow(status, text):
        observed, limit = overflow_numbers(text)
        return "overflow", said.observed or observed, said.limit or limit
    return _other_kind(status, text), None, None


def _excluded(status: int | None, text: str) -> ErrorKind | None:
    """Return the kind of what sounds like an overflow and is none."""
    if words.THINKING.search(text) and status in {400, 422, None, 200}:
        return "bad_thinking"
    if words.QUOTA.search(text):
        soon = _stated_wait(text)
        is_soon = (soon is not None and soon < 120) or words.QUOTA_OF_A_MINUTE.search(text)
        return "rate_limit" if is_soon and status != 402 else "quota"
    if words.RATE.search(text) or status == 429:
        return "rate_limit"
    if status in {401, 402}:
        return "auth" if status == 401 else "quota"
    return None


def _is_overflow(status: int | None, text: str) -> bool:
    if status in {402, 404} or grammar.is_item(text):
        return False
    # A refused key may speak of tokens as well; that a window is too small it does not say (Kimi does, with 401).
    return grammar.is_too_long(text) and (status not in {401, 403} or grammar.names_context(text))


def _other_kind(status: int | None, text: str) -> ErrorKind:
    if words.BYTES.search(text) or (status == 413 and not grammar.is_item(text)):
        return "too_many_bytes"
    if words.OVERLOADED.search(text):
        return "overloaded"
    if words.REFUSED.search(text):
        return "refused"
    if status != 404 and words.AUTH.search(text):
        return "auth"
    if status in {404, 400, None, 200} and words.MISSING.search(text):
        return "not_found"
    return _kind_by_status(status, text)


def _kind_by_status(status: int | None, text: str = "") -> ErrorKind:
    match status:
        case 401 | 403:
            return "auth"
        case 402:
            return "quota"
        case 404:
            return "not_found"
        case 413:
            return "too_many_bytes"
        case 429:
            return "rate_limit"
        case 503 | 529:
            return "overloaded"
        case 408 | 409 | 425:
            return "server"
        case int() if status >= 500:
            return "server"
        case int() if status >= 300:
            return "invalid"
        case _:
            return "invalid" if "invalid_request" in text else "server"


def _output_budget(text: str) -> Verdict | None:
    """Judge a refusal because of the asked output: lower it, unless the input alone fills the window (R-021)."""
    for pattern in words.SUM:
        found = pattern.search(text)
        if found:
            return _judge_sum({name: _int(number) for name, number in found.groupdict().items() if number})
    afford = re.search(rf"fewer max_tokens.*?can only afford {grammar.N}", text, re.DOTALL)
    if afford:
        limit = _int(afford[1])
        return ("output_budget", None, limit) if limit >= MIN_ROOM else ("quota", None, None)
    if words.PARAMETER_NAME.search(text) or grammar.leaves_negative_room(text) or not grammar.is_about_output(text):
        return None
    limit = _first_number(words.OUTPUT_LIMIT, text)
    if limit is not None and f"{limit} (exclusive)" in text:
        limit -= 1
    return "output_budget", None, limit


def _judge_sum(numbers: Mapping[str, int]) -> Verdict:
    """Judge an input and an output that are over the window together."""
    window, asked = numbers["window"], numbers["asked"]
    sent = numbers["sent"] if "sent" in numbers else numbers["total"] - asked
    if sent + asked == window + 1:  # vLLM stops counting there: the input may be any size above
        large = asked >= window // LARGE_OUTPUT_DIVISOR
        return ("output_budget", None, None) if large else ("overflow", sent if sent > window else None, window)
    room = window - sent
    return ("output_budget", sent, room) if room >= MIN_ROOM else ("overflow", sent, window)


def overflow_numbers(text: str) -> tuple[int | None, int | None]:
    """Return `(observed, limit)` in tokens as far as an overflow text states them.

    Only numbers that the text calls a size or a limit count: "(2013)" is an error number of MiniMax (T-18).
    """
    limit = _first_number(words.LIMIT, text)
    observed = _first_number(words.OBSERVED, text, over=limit or 0)
    if limit is not None and limit < MIN_WINDOW:
        limit = None
    return observed, limit


def _first_number(patterns: tuple[re.Pattern[str], ...], text: str, over: int = 0) -> int | None:
    """Return the first number above `over` that a pattern finds; patterns in their order."""
    found = (_int(match[1]) for pattern in patterns for match in pattern.finditer(text))
    return next((number for number in found if number > over), None)


def _int(text: str) -> int:
    """Return a number as it is written, with commas or not; hundreds of digits are only very many."""
    digits = text.replace(",", "").replace("_", "")
    return int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS


def _stated_wait(text: str) -> float | None:
    """Return the seconds that a text asks to wait ("try again in 1m2.5s")."""
    found = words.RETRY_IN.search(text)
    if not found or not any(found.groups()):
        return None
    hours, minutes, seconds, unit = found.groups()
    try:
        value = float(seconds or 0)
    except ValueError:  # the full stop of "in 2 hours."
        value = 0.0
    if (unit or "").startswith("m"):
        value /= 1_000
    return _bounded(_int(hours or "0") * 3_600 + _int(minutes or "0") * 60 + value)


def _bounded(seconds: float | None) -> float | None:
    """Return a wait as it can be counted with, `None` for what is none (a negative one, no number)."""
    return min(seconds, MAX_WAIT) if seconds is not None and seconds >= 0 else None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the response's headers ask to wait, `None` where they do not.

    RFC 9110 allows digits or a date; some servers write a fraction. Everything else is no wish.
    """
    milliseconds, value = headers.get("retry-after-ms", "").strip(), headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return _bounded(float(milliseconds) / 1_000)
    if _SECONDS.fullmatch(value):
        return _bounded(float(value))
    try:
        return _bounded(max(0.0, parsedate_to_datetime(value).timestamp() - time()))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def judge_redirect(status: int, location: str, url: str, endpoint: Endpoint) -> ModelError:
    """Return the error for an answer that sends us elsewhere: nobody follows, because the key would go along."""
    try:
        target = urljoin(url, location.strip()) if location.strip() else ""
    except ValueError:
        target = location
    target = shorten(sanitize_line(target.partition("?")[0].partition("#")[0]), MAX_ADDRESS)
    if not target:
        return ModelError("invalid", f"{endpoint.host} answered {status} and no explanation", status=status)
    hint = f"nothing was sent there, the key neither; the address in use is {endpoint.base_url}"
    path = url.removeprefix(endpoint.base_url.rstrip("/"))
    if target.endswith(path):
        hint += f"; if the other one is right, make {target.removesuffix(path)} the base_url of {endpoint.provider}"
    return ModelError("invalid", f"{endpoint.host} answered {status}: moved to {target}", status=status, hint=hint)


def _hint(kind: ErrorKind, observed: int | None, limit: int | None, wait: float | None) -> str:
    match kind:
        case "rate_limit" | "overloaded" if wait is not None and wait > MAX_RETRY_AFTER:
            long = f"{ceil(wait / 60)} minutes" if wait < MAX_WAIT else "a year or more"
            return f"it asks to wait {long}, which is not waited for; /model chooses another model"
        case "request_too_large_for_rate":
            return (
                f"the account allows {limit:,} tokens a minute and this request has {observed:,}; "
                "compact the conversation (/compact) or choose another model (/model)"
            )
        case "quota":
            return "check the plan and balance of this account, or choose another model (/model)"
        case "not_found":
            return "/model lists the models that can be used"
        case "too_many_bytes":
            return "images and long results count; leave some out or compact (/compact)"
        case _:
            return ""


def _about_key(endpoint: Endpoint) -> str:
    """Return what to look at when a server refuses the key."""
    if endpoint.key_command:
        return f"does api_key_cmd under [providers.{endpoint.provider}] print the right one?"
    if endpoint.is_stored:
        return f"tenuto login {endpoint.provider} stores another one"
    return f"is {endpoint.key_name} right?" if endpoint.key else f"set {endpoint.key_name}"


def with_hint(error: ModelError, endpoint: Endpoint) -> ModelError:
    """Return the error with what the user can do about it at this endpoint."""
    hint = error.hint
    if error.kind == "auth" and (endpoint.key_name or endpoint.has_key):
        done = _about_key(endpoint)
        hint = f"{endpoint.provider} at {endpoint.host} did not accept the key; {done}"
    elif error.kind == "not_found" and error.status == 404:
        hint = f"the address is {endpoint.base_url}; /model lists the models that can be used"
    if hint == error.hint:
        return error
    return ModelError(
        error.kind,
        error.text,
        status=error.status,
        observed=error.observed,
        limit=error.limit,
        retry_after=error.retry_after,
        hint=hint,
        param=error.param,
    )
