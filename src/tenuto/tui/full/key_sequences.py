"""Ways of writing keys that Textual's parser gets wrong, written as it knows them. Pure.

Of kitty's protocol it knows neither alternate keys, which end its input thread, nor releases, which it takes for
presses. An Escape before a key, which is how many terminals write Alt, it takes for the key Escape, which interrupts.
"""

from __future__ import annotations

import re

from tenuto.tui.modified_keys import MODIFIED_KEY, write_plainly

_ALT_SEQUENCE = re.compile(r"\x1b\x1b(?:O|\[([0-9]*)(?:;[0-9]*)?)([A-HP-S~])")
_WHEEL = re.compile(r"(?:\x1b[\[O]A){3,}|(?:\x1b[\[O]B){3,}")
_ALT_CHARACTER = re.compile(r"\x1b([ -NQ-WYZ`-~])")


def rewrite_keys(text: str) -> str:
    """Return the same input with every modified key written in one way, and without what is no key."""
    if "\x1b" not in text:
        return text
    text = _ALT_SEQUENCE.sub(_write_alt, text)
    text = _ALT_CHARACTER.sub(lambda match: f"\x1b[{ord(match[1])};3u", text.replace("\x1b\r", "\x1b[13;3u"))
    text = MODIFIED_KEY.sub(write_plainly, text.replace("\x1b\x7f", "\x1b[127;3u"))
    return f"{text[:-2]}\x1b[27u\x1b" if text.endswith("\x1b\x1b") else text


def read_wheel(text: str) -> str:
    """Return input with the wheel as the keys that scroll, for a terminal that has the mouse to itself.

    Most turn the wheel into arrow keys then, three or five at once, which would go through the history of prompts.
    """
    return _WHEEL.sub(lambda match: f"\x1b[1;2{match[0][-1]}" * (len(match[0]) // 3), text)


def _write_alt(match: re.Match[str]) -> str:
    return f"\x1b[{match[1] or 1};3{match[2]}"
