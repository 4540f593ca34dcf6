"""For every message and version that kio knows: the same bytes, and the same values.

kio (PyPI) is a codec by other people, derived from Kafka's schemas on its own. It turns some
numbers into datetimes, timedeltas and enums, zero uuids into None, and renames their fields.
"""

import dataclasses
import datetime as dt
import importlib
import io
import typing
import uuid
from collections.abc import Iterator
from functools import cache
from types import UnionType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from moldau.protocol.schema import Array, Field, Message, Struct, Type
from tests.strategies import SETTINGS, all_messages, structs

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECOND = dt.timedelta(milliseconds=1)

# Ours -> kio's, where it is not only `_ms` left out or a keyword's underscore. kio knows the
# schemas of an earlier Kafka, from before two of these fields were renamed.
RENAMED = {
    "kraft_version": "k_raft_version",
    "kraft_version_feature": "k_raft_version_feature",
    "generation_id_or_member_epoch": "generation_id",
    "acceptable_recovery_lag_legacy": "acceptable_recovery_lag",
}


def cases() -> Iterator[object]:
    """Yield every message and version, with the kio class."""
    ours = {cls.__name__: cls for cls in all_messages()}
    for versions in schema_name_map.values():
        for version, kinds in versions.items():
            for path in kinds.values():
                module, name = path.split(":")
                yield pytest.param(ours[name], version, module, id=f"{name}-{version}")


@pytest.mark.long
@pytest.mark.parametrize(("cls", "version", "module"), list(cases()))
@SETTINGS
@given(data=st.data())
def test_same_bytes_and_values(
    cls: type[Message], version: int, module: str, data: st.DataObject
) -> None:
    their_class = getattr(importlib.import_module(module), cls.__name__)
    message = data.draw(structs(cls, version, narrowed(cls, version, their_class).get))
    encoded = message.encode(version)
    theirs, size = entity_reader(their_class)(encoded, 0)
    assert size == len(encoded)
    assert_same(message, theirs, version)
    written = io.BytesIO()
    entity_writer(their_class)(written, theirs)
    assert written.getvalue() == encoded
    assert cls.decode(encoded, version) == message


@cache
def narrowed(
    cls: type[Struct], version: int, their_class: type
) -> dict[Field, st.SearchStrategy[object]]:
    """Return strategies for the fields to which kio gives a narrower type than the wire does."""
    strategies: dict[Field, st.SearchStrategy[object]] = {}
    hints = typing.get_type_hints(their_class)
    for field, theirs in pairs(cls, version, their_class):
        inner = field.type.of if isinstance(field.type, Array) else field.type
        hint = hints[theirs.name]
        if not isinstance(inner, Type):
            strategies |= narrowed(inner, version, element_type(hint))
        elif theirs.metadata["kafka_type"] == "error_code":
            strategies[field] = st.sampled_from([code.value for code in ErrorCode])
        elif theirs.metadata["kafka_type"] == "timedelta_i64":
            strategies[field] = st.integers(-(10**12), 10**12)
        elif theirs.metadata["kafka_type"] == "datetime_i64":
            # kio cannot read -1, Kafka's "none", unless the field may be None.
            first = -1 if type(None) in typing.get_args(hint) else 0
            strategies[field] = st.integers(first, 4 * 10**12)
    return strategies


def pairs(
    cls: type[Struct], version: int, their_class: type
) -> Iterator[tuple[Field, "dataclasses.Field[object]"]]:
    """Yield the fields of a version beside kio's."""
    ours = [field for field in cls._fields if field.since <= version <= field.until]
    for field, theirs in zip(ours, dataclasses.fields(their_class), strict=True):
        names = (field.name, field.name.removesuffix("_ms"), RENAMED.get(field.name))
        assert theirs.name.removesuffix("_") in names
        yield field, theirs


def element_type(hint: object) -> type:
    """Return the class inside of `X | None` and `tuple[X, ...]`."""
    if typing.get_origin(hint) in (UnionType, typing.Union):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is tuple:
        hint = typing.get_args(hint)[0]
    assert isinstance(hint, type)
    return hint


def assert_same(ours: object, theirs: object, version: int) -> None:
    if isinstance(ours, Struct):
        for field, their_field in pairs(type(ours), version, type(theirs)):
            assert_same(getattr(ours, field.name), getattr(theirs, their_field.name), version)
    elif isinstance(ours, tuple):
        assert isinstance(theirs, tuple)
        for our_element, their_element in zip(ours, theirs, strict=True):
            assert_same(our_element, their_element, version)
    else:
        assert ours == as_number(theirs, none=ours)


def as_number(theirs: object, none: object) -> object:
    """Undo kio's types; its None is null, a zero uuid or the time -1."""
    match theirs:
        case dt.timedelta():
            return theirs // MILLISECOND
        case dt.datetime():
            return (theirs - EPOCH) // MILLISECOND
        case ErrorCode():
            return theirs.value
        case uuid.UUID():
            return theirs.bytes
        case None:
            assert none in (None, bytes(16), -1)
            return none
    return theirs
