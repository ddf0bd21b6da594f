"""Looking for words as people type them: capitals count as soon as one is typed."""

from __future__ import annotations

from collections.abc import Iterable


def counts_capitals(query: str) -> bool:
    """Say whether upper and lower case are told apart."""
    return query != query.lower()


def count_matches(text: str, query: str) -> int:
    """Return how often `query` occurs in a text."""
    if not query:
        return 0
    return text.count(query) if counts_capitals(query) else text.lower().count(query)


def count_in_prose(text: str, query: str) -> int:
    """Return how often `query` occurs in Markdown as it is read: it may have been written "the **tail** block"."""
    count = count_matches(text, query)
    words = query.split() if not count else []
    if len(words) > 1 and all(count_matches(text, word) for word in words):
        count = count_matches(text.replace("**", "").replace("`", ""), query)
    return count


def may_contain(data: bytes, query: str) -> bool:
    """Say whether lines of JSON can have prose in which `query` occurs; `False` is certain. Nothing is decoded."""
    lowered = data if counts_capitals(query) else data.lower()
    words = query.split()
    plain = [word for word in words if _stands_as_it_is(word, query)]
    if len(plain) < len(words) or not query.isprintable():
        return all(word.encode() in lowered for word in plain)
    wanted = query.encode()
    if wanted in lowered or len(words) < 2 or not all(word.encode() in lowered for word in words):
        return wanted in lowered
    return wanted in lowered.replace(b"**", b"").replace(b"`", b"")


def _stands_as_it_is(word: str, query: str) -> bool:
    """Say whether a word's bytes are in JSON just when the word is: nothing escaped, no case that bytes know not of."""
    if not word.isprintable() or any(sign in word for sign in '"\\'):
        return False
    return word.isascii() or counts_capitals(query) or word == word.upper()


def nearest(word: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """Return the name that a word was probably meant to be, empty for none. `likeness`: from 0 to 1, at least."""
    import difflib  # 4 ms, for whoever mistypes

    known = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=likeness)
    return known[close[0]] if close else ""


def did_you_mean(word: str, names: Iterable[str], form: str = "{}") -> str:
    """Return "; did you mean NAME?" for the end of a line on a mistyped word, empty where no name is near.

    `form` has the name in the place of `{}`.
    """
    name = nearest(word, names)
    return f"; did you mean {form.format(name)}?" if name else ""
