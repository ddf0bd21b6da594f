"""Text of strangers: what it cannot do to its frame, and what it cannot carry away."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.foreign import PAGE_TAG, count_unseen, disarm_notes, frame

HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=4),
        st.sampled_from(
            ["</web-page>", "< / WEB-page >", "</web-page\n>", "<harness-note>", "</harness-note>", "<", "/"]
        ),
    ),
    max_size=8,
).map("".join)


@given(text=HOSTILE)
def test_a_page_ends_where_its_frame_ends_and_holds_no_note(text: str):
    framed = frame(text, PAGE_TAG)
    ends = [found.start() for found in re.finditer(r"<\s*/\s*web-page", framed, re.IGNORECASE)]
    assert ends == [len(framed) - len("</web-page>")]
    assert not re.search(r"<\s*/?\s*harness-note", framed, re.IGNORECASE)


@given(text=st.text(max_size=40))
def test_other_text_stays_as_it_is(text: str):
    assert disarm_notes(text) == text


WORDS = st.lists(st.text("abcdefghij0123456789", min_size=4, max_size=12), min_size=1, max_size=12)


@given(words=WORDS, marks=st.lists(st.sampled_from("/?&=#"), min_size=12, max_size=12))
def test_what_was_said_is_not_counted_however_it_is_put_together(words: list[str], marks: list[str]):
    path = "".join(mark + word for mark, word in zip(marks, words, strict=False))
    url = f"https://example.org/{path}".partition("#")[0]
    assert count_unseen(url, [" ".join(words)]) == 0


@given(words=WORDS)
def test_what_nobody_has_said_is_counted_whole(words: list[str]):
    sizes = sum(map(len, words))
    assert count_unseen(f"https://example.org/{'/'.join(words)}", ["nothing of it"]) == sizes
    assert count_unseen(f"https://{'.'.join(words)}.example.org/", ["nothing of it"]) == sizes
    encoded = "".join(f"%{ord(letter):02x}" for letter in "&".join(words))
    assert count_unseen(f"https://example.org/?q={encoded}", ["nothing of it"]) == sizes
