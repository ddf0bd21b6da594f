"""Texts between tags, such that no text can close the tag that it is put into (R-041)."""

from __future__ import annotations


def tagged(name: str, text: str) -> str:
    """Return `text` on lines of its own between `<name>` and `</name>`."""
    return f"<{name}>\n{keep_within(text, name)}\n</{name}>"


def keep_within(text: str, *names: str) -> str:
    """Return `text` with the closing tags of these names made harmless; any other text stays as it is."""
    for name in names:
        text = text.replace(f"</{name}>", f"<\\/{name}>")
    return text
