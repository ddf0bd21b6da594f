"""What reminders ask of the view is the same whether it grew step by step or is looked at as a whole."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.state.seen import SeenView
from tenuto.protocol.message import DeveloperMessage, FileUse, Message, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart

PATHS = st.sampled_from(["/w/a.py", "/w/b.py", "/w/lib/c.py", "/w/lib/deep/d.py"])
FILES = st.lists(PATHS, max_size=3).map(lambda paths: tuple(FileUse(path=path, op="read") for path in paths))
MESSAGES = st.one_of(
    st.builds(lambda text: UserMessage(parts=(TextPart(text=text),)), st.sampled_from("ab")),
    st.builds(lambda text, files: DeveloperMessage(text=text, files=files), st.sampled_from("ab"), FILES),
    st.builds(lambda files: ToolResultMessage(call_id="1", name="read", parts=(), files=files), FILES),
)
VIEWS = st.lists(st.tuples(st.integers(0, 12), st.lists(MESSAGES, max_size=6)), max_size=6)


@given(VIEWS)
def test_it_is_the_same_as_a_look_at_the_whole_view(changes: list[tuple[int, list[Message]]]):
    seen, view = SeenView(), list[Message]()
    for kept, added in changes:
        view = [*view[:kept], *added]  # most grow at the end; a compaction or an edit makes another one
        seen.follow(view)
        assert seen.notes == [message for message in view if isinstance(message, DeveloperMessage)]
        uses = [use for message in view for use in getattr(message, "files", ())]
        assert list(seen.touched) == list(dict.fromkeys(use.path for use in uses))
        assert list(seen.folders) == list(dict.fromkeys(os.path.dirname(use.path) for use in uses))


def test_it_looks_at_what_is_new_alone():
    looked: list[int] = []

    class Watched(list[Message]):
        def __iter__(self):
            looked.append(len(self))
            return super().__iter__()

        def __getitem__(self, index):
            found = super().__getitem__(index)
            return Watched(found) if isinstance(index, slice) else found

    view, seen = Watched(DeveloperMessage(text=str(number)) for number in range(500)), SeenView()
    seen.follow(view)
    looked.clear()
    seen.follow(Watched([*view, DeveloperMessage(text="new")]))
    assert 1 in looked and max(size for size in looked if size not in (500, 501)) == 1
