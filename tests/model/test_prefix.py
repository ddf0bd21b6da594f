"""The stable prefix and the rule of signed thinking (DESIGN section 7)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.anthropic.encoder import AnthropicEncoder
from tenuto.model.wire.conversation import ConversationCache
from tenuto.protocol.message import DeveloperMessage, Message, SystemMessage, UserMessage
from tenuto.protocol.model import ModelRequest
from tenuto.protocol.part import AssistantPart, TextPart, ToolCallPart
from tests.model.bodies import Recording, conversation_items
from tests.model.views import IMAGE, PROVIDERS, TOOLS, answer, facts, load_blob, request, result, thinking, user

STEPS = ["ask", "ask", "ask", "edit", "no thinking", "drop", "system"]
TURN = st.fixed_dictionaries(
    {
        "calls": st.integers(0, 4),
        "thinking": st.booleans(),
        "text": st.text(max_size=8),
        "notes": st.integers(0, 2),
        "image": st.booleans(),
        "steer": st.booleans(),
    }
)


def gap(number: int, turn: dict[str, object], calls: int) -> list[Message]:
    """What comes between two answers: results, what the user says, developer texts in any place."""
    notes: list[Message] = [DeveloperMessage(text=f"note {number}.{place}") for place in range(int(str(turn["notes"])))]
    messages: list[Message] = [result(f"c{number}.{place}", f"out {number}.{place}") for place in range(calls)]
    if not calls or turn["steer"]:
        messages += notes[:1]
        messages.append(UserMessage(parts=(TextPart(text=f"say {number}"), *((IMAGE,) if turn["image"] else ()))))
        notes = notes[1:]
    return messages + notes


async def play(provider: str, turns: list[dict[str, object]]) -> tuple[list[dict[str, object]], list[bytes]]:
    """Make one request a turn, each answer stored with the prefix that the client gave it."""
    recording = Recording(provider)
    view: list[Message] = [SystemMessage(text="system"), SystemMessage(text="summary"), *gap(0, turns[0], 0)]
    bodies: list[dict[str, object]] = []
    raw: list[bytes] = []
    for number, turn in enumerate(turns, 1):
        asked = request(provider, view)
        raw.append(await recording.send(asked))
        bodies.append(json.loads(raw[-1]))
        prefix = recording.client._wire.cache.encode(asked).prefix  # pyright: ignore
        calls = int(str(turn["calls"]))
        parts: list[AssistantPart] = [thinking(provider, f"t{number}")] if turn["thinking"] else []
        parts += [TextPart(text=str(turn["text"]))] + [
            ToolCallPart(id=f"c{number}.{place}", name="read") for place in range(calls)
        ]
        view += [answer(provider, *parts, prefix=prefix), *gap(number, turn, calls)]
    return bodies, raw


@given(provider=st.sampled_from(PROVIDERS), turns=st.lists(TURN, min_size=20, max_size=20))
async def test_t19_each_request_begins_with_the_one_before(provider: str, turns: list[dict[str, object]]):
    bodies, raw = await play(provider, turns)
    items = [conversation_items(provider, body) for body in bodies]
    for before, after in pairwise(items):
        assert after[: len(before)] == before
        assert len(after) > len(before) or not before
    if provider != "anthropic":
        # Without cache marks the bytes themselves are a prefix, but for the brackets at the end.
        assert all(after.startswith(before[:-2]) for before, after in pairwise(raw))


@given(provider=st.sampled_from(PROVIDERS), turns=st.lists(TURN, min_size=5, max_size=12))
async def test_a_warm_client_sends_what_a_fresh_one_does(provider: str, turns: list[dict[str, object]]):
    """Resume sends the same bytes: what is remembered of earlier requests changes nothing."""
    recording = Recording(provider)
    view: list[Message] = [SystemMessage(text="system"), *gap(0, turns[0], 0)]
    for number, turn in enumerate(turns, 1):
        warm, fresh = (
            await recording.send(request(provider, view)),
            await Recording(provider).send(request(provider, view)),
        )
        assert warm == fresh
        calls = int(str(turn["calls"]))
        parts: list[AssistantPart] = [ToolCallPart(id=f"c{number}.{place}", name="read") for place in range(calls)]
        view += [answer(provider, TextPart(text="x"), *parts), *gap(number, turn, calls)]
        if number % 4 == 0:
            del view[2:4]
        if number % 5 == 0:
            view[0] = SystemMessage(text=f"system {number}")


# --- signed thinking ---


class Session:
    """A history whose answers all think, over one client."""

    def __init__(self, provider: str = "anthropic") -> None:
        self.provider = provider
        self.cache = ConversationCache(AnthropicEncoder(provider), load_blob)
        self.view: list[Message] = [SystemMessage(text="system"), user("start")]
        self.count = 0

    def ask(self, **fields: object) -> list[str]:
        """Add an answer to the view and return which thinking its request carried."""
        asked = self.request(**fields)
        encoded = self.cache.encode(asked)
        sent = b",".join(body for _, body in encoded.runs)
        self.count += 1
        self.view += [
            answer(
                self.provider,
                thinking("anthropic", f"t{self.count}"),
                TextPart(text=f"a{self.count}"),
                prefix=encoded.prefix,
            ),
            user(f"u{self.count}"),
        ]
        return [f"t{number}" for number in range(1, self.count) if b'"sig-t%d"' % number in sent]

    def request(self, **fields: object) -> ModelRequest:
        return request(self.provider, self.view, **fields)


def test_thinking_goes_along_while_nothing_before_it_changes():
    session = Session()
    assert [session.ask() for _ in range(4)] == [[], ["t1"], ["t1", "t2"], ["t1", "t2", "t3"]]


@pytest.mark.parametrize("change", ["system", "tools", "first message", "dropped message"])
def test_thinking_after_a_change_stays_out_for_good(change: str):
    session = Session()
    for _ in range(3):
        session.ask()
    tools = TOOLS
    match change:
        case "system":
            session.view[0] = SystemMessage(text="other")
        case "tools":
            tools = TOOLS[:1]
        case "first message":
            session.view[1] = user("another start")
        case _:
            del session.view[1:3]
    assert session.ask(tools=tools) == []
    assert session.ask(tools=tools) == ["t4"]
    assert session.ask(tools=tools) == ["t4", "t5"]


def test_an_edit_in_the_middle_leaves_the_thinking_before_it():
    session = Session()
    for _ in range(4):
        session.ask()
    session.view[5] = user("edited")
    assert session.ask() == ["t1", "t2"]
    # The edited view is a history of its own now: what was sent with it stays.
    assert session.ask() == ["t1", "t2", "t5"]


def test_an_undo_brings_the_thinking_back():
    session = Session()
    for _ in range(3):
        session.ask()
    before = list(session.view)
    session.view[1] = user("other")
    session.ask()
    session.view = before
    session.count = 3
    assert session.ask() == ["t1", "t2", "t3"]


def test_r050_a_request_without_thinking_carries_none_and_what_was_left_out_stays_out():
    session = Session()
    for _ in range(3):
        session.ask()
    assert session.ask(thinking=False) == []
    assert session.ask() == ["t4"]
    assert session.ask() == ["t4", "t5"]


def test_r051_thinking_of_another_model_stays_out_and_comes_back_with_its_model():
    session = Session()
    session.ask()
    other = request(session.provider, session.view, model=facts("anthropic", images=False))
    assert b"sig-t1" in b"".join(body for _, body in session.cache.encode(other).runs)
    import msgspec

    foreign = msgspec.structs.replace(other, model=msgspec.structs.replace(other.model, name="other"))
    assert b"sig-t1" not in b"".join(body for _, body in session.cache.encode(foreign).runs)
    assert session.ask() == ["t1"]


def test_a_history_without_prefixes_sends_no_thinking():
    view = [user("a"), answer("anthropic", thinking("anthropic"), TextPart(text="b")), user("c")]
    encoded = ConversationCache(AnthropicEncoder("anthropic"), load_blob).encode(request("anthropic", view))
    assert b"sig-" not in b"".join(body for _, body in encoded.runs)


@given(
    st.lists(st.sampled_from(["ask", "ask", "ask", "edit", "no thinking", "drop", "system"]), min_size=3, max_size=14),
    st.data(),
)
async def test_no_history_makes_a_prefix_checking_provider_refuse(steps: list[str], data: st.DataObject):
    """The scripted server checks signatures as Anthropic does since Fable 5.1: against the exact prefix (T-12)."""
    import msgspec

    from tenuto.protocol.part import ThinkingPart
    from tests.server.anthropic_rules import _check_thinking  # pyright: ignore
    from tests.server.anthropic_wire import prefix_digests, sign
    from tests.server.options import Options

    recording = Recording("anthropic")
    view: list[Message] = [SystemMessage(text="s"), user("start")]
    for number, step in enumerate(steps):
        if step == "edit" and len(view) > 3:
            place = data.draw(
                st.sampled_from([place for place, message in enumerate(view) if isinstance(message, UserMessage)])
            )
            view[place] = user(f"edited {number}")
        elif step == "drop" and len(view) > 5:
            del view[2:4]
        elif step == "system":
            view[0] = SystemMessage(text=f"s{number}")
        asked = request("anthropic", view, thinking=step != "no thinking")
        body = await recording.body(asked)
        _check_thinking(body, Options(check_thinking=True))
        *_, (_, _, digest, previous) = prefix_digests(body)
        block = {
            "type": "thinking",
            "thinking": f"t{number}",
            "signature": sign(body["model"], digest, previous, f"t{number}"),
        }
        part = ThinkingPart(text=f"t{number}", provider="anthropic", block=msgspec.Raw(msgspec.json.encode(block)))
        prefix = recording.client._wire.cache.encode(asked).prefix  # pyright: ignore
        view += [answer("anthropic", part, TextPart(text=f"a{number}"), prefix=prefix), user(f"u{number}")]
