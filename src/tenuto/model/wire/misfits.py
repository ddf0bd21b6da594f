"""What comes with status 200 and is no answer of a model: a page, a text, an error in another form.

Gateways put errors there that are worth another attempt; everything else is final, because it would come again.
"""

from __future__ import annotations

import html
import re

from tenuto.model.error_text import read_error
from tenuto.model.errors import classify, classify_object
from tenuto.protocol.model import ModelError
from tenuto.text import json_access
from tenuto.text.bounding import shorten

_PAGE = re.compile(r"<(?:!doctype html|html|head|body|!--|\?xml|[a-z]+[\s>])", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_UNTOLD = frozenset({"server", "unknown", "ambiguous"})
"""What `classify` says of a text in which it knows no word."""


def judge_body(body: bytes, address: str) -> ModelError:
    """Return the error that a body means which is no stream of events. `address` is where it came from."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    found = json_access.decode_object(text) if text.startswith("{") else None
    if found is not None and ("error" in found or "detail" in found):
        return classify_object("the server", found)
    if found is not None:
        return _misfit("the server answered with one JSON object where a stream was asked for", address)
    if _PAGE.match(text):
        return _page(text, address)
    return _known(text) or _misfit(
        f"the server answered with text where a stream was asked for: {_quote(text)}", address
    )


def judge_first_event(data: bytes, complaint: str, address: str) -> ModelError:
    """Return the error that an answer means whose first event is no JSON; `complaint` says so."""
    text = data.decode("utf-8", "replace").strip()
    if _PAGE.match(text):
        return _page(text, address)
    return _known(text) or _misfit(complaint, address)


def _known(text: str) -> ModelError | None:
    """Return the error that the words name: a limit, an overload, a missing key."""
    error = classify("the server", 200, text)
    return None if error.kind in _UNTOLD else error


def _page(text: str, address: str) -> ModelError:
    titled = _TITLE.search(text)
    title = html.unescape(titled[2] if titled else read_error(text).shown)
    said = f"a web page answered where a model was asked: {_quote(title)}"
    return _misfit(said, address, "; where a network asks to sign in first, do that in a browser")


def _misfit(text: str, address: str, more: str = "") -> ModelError:
    return ModelError("invalid", text, hint=f"is {address} the right address?{more}")


def _quote(text: str) -> str:
    line = " ".join(json_access.clean_text(text).split())
    return f"“{shorten(line, json_access.MAX_QUOTED)}”"
