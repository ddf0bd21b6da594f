"""PDF files and notebooks as bytes, made for a test."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

from pypdf import PdfReader, PdfWriter


def pdf(pages: Sequence[str]) -> bytes:
    """A PDF file written by hand: each page shows the lines of its text, an empty one nothing."""
    return pdf_of([_content(text) for text in pages])


def pdf_of(contents: Sequence[bytes]) -> bytes:
    """A PDF file with these content streams, one a page, in ASCII but for what is compressed."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    kids: list[int] = []
    for content in contents:
        packed = zlib.compress(content)
        objects.append(b"<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream" % (len(packed), packed))
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
        objects.append(page % len(objects))
        kids.append(len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))


def _content(text: str) -> bytes:
    rows = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n")) if text else ""
    return f"BT /F1 12 Tf 72 720 Td {rows}ET".encode()


def encrypted(data: bytes, user_password: str) -> bytes:
    """The same file as a writer encrypts it."""
    writer, made = PdfWriter(clone_from=PdfReader(io.BytesIO(data))), io.BytesIO()
    writer.encrypt(user_password, "the owner's", algorithm="RC4-128")
    writer.write(made)
    return made.getvalue()
