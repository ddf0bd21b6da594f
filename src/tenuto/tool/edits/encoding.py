"""From bytes to text and back without changing a byte that nobody asked to change (R-089)."""

from __future__ import annotations

import codecs
import re
from typing import Literal

import msgspec

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 65_536
_NUL_SHARE = 0.3
"""UTF-16 text in a Latin script is half NULs, all at odd or all at even places."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_LINE_END = re.compile(r"\r\n|\n")
_EVEN_SHARE = 0.9
_VALID_PER_FAULT = 5


class TextFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file's text with its own line ends, and all that is needed to write it back byte for byte.

    `errors` is the codec's error handler: `surrogateescape` for UTF-8 with a few broken bytes.
    """

    text: str
    encoding: str = "utf-8"
    errors: str = "strict"
    bom: bytes = b""

    @property
    def newline(self) -> Literal["\n", "\r\n"]:
        """The line end that most lines have."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows > self.text.count("\n") - windows else "\n"

    @property
    def is_mixed(self) -> bool:
        """Whether it has both kinds of line end."""
        windows = self.text.count("\r\n")
        return 0 < windows < self.text.count("\n")

    @property
    def description(self) -> str:
        """What is unusual about it, for a notice; empty for plain UTF-8 with LF."""
        unusual: list[str] = []
        if self.encoding != "utf-8" or self.errors != "strict":
            unusual.append(self.encoding if self.errors == "strict" else "utf-8 with broken bytes")
        if self.bom:
            unusual.append("BOM")
        if "\r\n" in self.text:
            unusual.append("mixed line ends" if self.is_mixed else "CRLF")
        return ", ".join(unusual)

    def encode(self, text: str) -> bytes:
        """Return the bytes of the file with other text. Raises `UnicodeEncodeError`."""
        return self.bom + text.encode(self.encoding, self.errors)


def decode_file(data: bytes) -> TextFile | None:
    """Return the text of a file's bytes, `None` when they are no text. Encoding it again gives the same bytes."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _exact(data, encoding, bom=bom)
    sample = data[:_SAMPLE]
    if b"\0" in sample:
        encoding = _guess_wide(sample)
        return _exact(data, encoding) if encoding else None
    try:
        return TextFile(text=data.decode("utf-8"))
    except UnicodeDecodeError:
        return _decode_legacy(data)


def _exact(data: bytes, encoding: str, errors: str = "strict", bom: bytes = b"") -> TextFile | None:
    """Decode, and believe it only if encoding gives the same bytes."""
    try:
        found = TextFile(text=data[len(bom) :].decode(encoding, errors), encoding=encoding, errors=errors, bom=bom)
        return found if found.encode(found.text) == data else None
    except UnicodeError:
        return None


def _guess_wide(sample: bytes) -> str:
    """Return the UTF-16 that a sample without a BOM looks like, empty for none."""
    half = max(len(sample) // 2, 1)
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if odd > _NUL_SHARE and even < odd / 10:
        return "utf-16-le"
    return "utf-16-be" if even > _NUL_SHARE and odd < even / 10 else ""


def _decode_legacy(data: bytes) -> TextFile | None:
    """Decode text that is not valid UTF-8. Latin-1 takes everything, so the answer is never wrong in bytes."""
    if _is_binary(data[:_SAMPLE]):
        return None
    if _is_damaged_utf8(data):
        found = _exact(data, "utf-8", "surrogateescape")
    elif _looks_like_gbk(data[:_SAMPLE]):
        found = _exact(data, "gb18030")
    else:
        found = None
    return found or _exact(data, "cp1252") or _exact(data, "latin-1")


def _is_binary(sample: bytes) -> bool:
    """Whether control bytes that no text has are more than a stray few."""
    control = sum(sample.count(byte) for byte in (*range(1, 8), *range(14, 27), *range(28, 32)))
    return control * 20 > len(sample)


def _is_damaged_utf8(data: bytes) -> bool:
    """Whether most of the non-ASCII is good UTF-8, so that a few bytes are broken and not the whole file foreign."""
    faults = len(re.findall("[\udc80-\udcff]", data.decode("utf-8", "surrogateescape")))
    high = len(re.findall(rb"[\xc2-\xf4][\x80-\xbf]+", data))
    return high - faults > _VALID_PER_FAULT * faults


def _looks_like_gbk(sample: bytes) -> bool:
    """Whether high bytes come in pairs, as Chinese characters do and accented letters do not."""
    runs = [len(run) for run in _HIGH_RUN.findall(sample[:-1])]
    return bool(runs) and sum(length % 2 == 0 for length in runs) >= _EVEN_SHARE * len(runs)


def to_lf(text: str) -> str:
    """Return `text` with LF for every CRLF; a lone CR is content and stays."""
    return text.replace("\r\n", "\n")


def with_newline(text: str, newline: str) -> str:
    """Return `text` with every line end turned into `newline`."""
    return _LINE_END.sub(newline, text) if newline != "\n" else to_lf(text)
