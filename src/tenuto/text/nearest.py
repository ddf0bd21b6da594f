"""What a mistyped word was meant to be. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str]) -> str:
    """Return the name that a word was probably meant to be, empty for none."""
    import difflib  # 4 ms, for whoever mistypes

    known = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return known[close[0]] if close else ""


def did_you_mean(word: str, names: Iterable[str], form: str = "{}") -> str:
    """Return "; did you mean NAME?" for the end of a line on a mistyped word, empty where no name is near.

    `form` has the name in the place of `{}`.
    """
    name = nearest(word, names)
    return f"; did you mean {form.format(name)}?" if name else ""
