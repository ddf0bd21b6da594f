"""The vocabulary that travels: every type of it encodes, decodes, and lets a later version say more (DESIGN 2)."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from tenuto.protocol.entry import UnknownEntry
from tenuto.protocol.event import AnyEvent
from tenuto.protocol.message import HistoryEvent, KnownEntry
from tenuto.protocol.operation import AnyOperation
from tenuto.protocol.part import AssistantPart, ContentPart

EVENTS = get_args(AnyEvent)
OPERATIONS = get_args(AnyOperation)
ENTRIES = get_args(KnownEntry)
PARTS = tuple(dict.fromkeys((*get_args(AssistantPart), *get_args(ContentPart))))
LATER = {"of_a_later_version": {"a": [1, None, "ä"]}}


def example(kind: msgspec.inspect.Type) -> Any:
    """Return a JSON value of a type, every field filled, so that nothing is left to a default."""
    match kind:
        case msgspec.inspect.StrType():
            return "text"
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType():
            return 7
        case msgspec.inspect.FloatType():
            return 1.5
        case msgspec.inspect.NoneType():
            return None
        case msgspec.inspect.LiteralType():
            return kind.values[-1]
        case msgspec.inspect.UnionType():
            return example(kind.types[0])
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return [example(kind.item_type)]
        case msgspec.inspect.DictType():
            return {"key": example(kind.value_type)}
        case msgspec.inspect.StructType():
            fields = {field.encode_name: example(field.type) for field in kind.fields}
            return {**({kind.tag_field: kind.tag} if kind.tag_field else {}), **fields}
        case _:
            return {"any": ["thing"]}


@pytest.mark.parametrize(
    "family", [EVENTS, OPERATIONS, ENTRIES, PARTS], ids=["events", "operations", "entries", "parts"]
)
def test_tags_are_unique_and_nothing_can_be_changed(family: tuple[type[msgspec.Struct], ...]) -> None:
    tags = [kind.__struct_config__.tag for kind in family]
    assert len(set(tags)) == len(tags)
    for kind in family:
        assert kind.__struct_config__.frozen, kind
        assert not kind.__struct_config__.forbid_unknown_fields, kind


@pytest.mark.parametrize(
    ("kind", "union"),
    [
        *((kind, AnyEvent) for kind in EVENTS),
        *((kind, AnyOperation) for kind in OPERATIONS),
        *((kind, KnownEntry) for kind in ENTRIES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_type_is_read_back_as_it_was_and_unknown_fields_harm_nothing(kind: type, union: Any) -> None:
    values = example(msgspec.inspect.type_info(kind))
    made = msgspec.json.decode(msgspec.json.encode(values), type=union)
    assert type(made) is kind
    again = msgspec.json.encode(made)
    assert msgspec.json.decode(again, type=union) == made
    later = msgspec.json.encode({**msgspec.json.decode(again), **LATER})
    assert msgspec.json.decode(later, type=union) == made


@pytest.mark.parametrize("kind", [*EVENTS, *OPERATIONS], ids=lambda kind: kind.__name__)
def test_every_event_and_operation_names_its_session_and_its_submission(kind: type[msgspec.Struct]) -> None:
    assert {"session_id", "submission_id"} <= {field.name for field in msgspec.structs.fields(kind)}


def test_every_event_has_a_session_of_its_own() -> None:
    for kind in EVENTS:
        (field,) = [field for field in msgspec.structs.fields(kind) if field.name == "session_id"]
        assert field.required, kind


def test_the_history_holds_all_types_of_the_design_and_whatever_comes_later() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in ENTRIES}
    assert tags >= {
        *("header", "system", "user", "developer", "assistant", "tool_result", "shell", "compaction", "view_edit"),
        *("undo", "branch", "branch_summary", "extension", "pin", "unpin", "todo", "queued", "dequeued", "model"),
        *("mode", "title", "label", "approval", "usage", "notice"),
    }
    assert UnknownEntry in get_args(HistoryEvent)
    assert UnknownEntry not in ENTRIES
