"""Protobuf's messages as columns: a plan for each type, made once, that builds whole columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from moldau.pipelines.decoding.decoder import inside, no_counterpart, spread

# Spark has no unsigned numbers: the next wider type takes them all.
_SCALARS: Final = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
}
_TIMES: Final = {
    "google.protobuf.Timestamp": pa.timestamp("us", "UTC"),
    "google.protobuf.Duration": pa.duration("us"),
}
_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """A type, and how Python's values of it, or None, become an array."""

    arrow_type: pa.DataType
    build: Callable[[Sequence[Any]], pa.Array]


def message_plan(
    descriptor: Descriptor, above: tuple[str, ...] = (), where: str = ""
) -> ColumnPlan:
    """Return the plan of a message; `above` are the messages that contain it."""
    if descriptor.full_name in _TIMES:
        return _time_plan(_TIMES[descriptor.full_name])
    if descriptor.full_name in above:
        raise no_counterpart(where, f"{descriptor.full_name}, which contains itself,")
    if not descriptor.fields:
        raise no_counterpart(where, f"{descriptor.full_name}, a message without fields,")
    within = (*above, descriptor.full_name)
    plans = {
        field.name: _field_plan(field, within, inside(where, field.name))
        for field in descriptor.fields
    }
    fields = [pa.field(name, plan.arrow_type) for name, plan in plans.items()]

    def build(messages: Sequence[Message | None]) -> pa.Array:
        present = [message for message in messages if message is not None]
        columns = [plan.build(present) for plan in plans.values()]
        struct = pa.StructArray.from_arrays(columns, fields=fields)
        if len(present) == len(messages):
            return struct
        places = [place for place, message in enumerate(messages) if message is not None]
        return spread(struct, places, len(messages))

    return ColumnPlan(pa.struct(fields), build)


def _field_plan(field: FieldDescriptor, above: tuple[str, ...], where: str) -> ColumnPlan:
    """Return how a column of one field is built from the messages that have it."""
    if _is_map(field):
        return _map_plan(field, above, where)
    if field.is_repeated:
        return _list_plan(field, above, where)
    element = _element_plan(field, above, where)
    get = attrgetter(field.name)
    name = field.name

    def build_if_present(messages: Sequence[Message]) -> pa.Array:
        return element.build([get(each) if each.HasField(name) else None for each in messages])

    def build(messages: Sequence[Message]) -> pa.Array:
        return element.build(list(map(get, messages)))

    # A default that the schema itself declares stands for what is missing.
    is_optional = field.has_presence and not field.has_default_value
    return ColumnPlan(element.arrow_type, build_if_present if is_optional else build)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _list_plan(field: FieldDescriptor, above: tuple[str, ...], where: str) -> ColumnPlan:
    element = _element_plan(field, above, f"{where}[]")
    list_type = pa.list_(pa.field("element", element.arrow_type))
    get = attrgetter(field.name)

    def build(messages: Sequence[Message]) -> pa.Array:
        lists = list(map(get, messages))
        elements = element.build(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_offsets(lists), elements, list_type)

    return ColumnPlan(list_type, build)


def _map_plan(field: FieldDescriptor, above: tuple[str, ...], where: str) -> ColumnPlan:
    entry = field.message_type.fields_by_name
    key = _element_plan(entry["key"], above, f"{where}[]")
    value = _element_plan(entry["value"], above, f"{where}[]")
    map_type = pa.map_(key.arrow_type, value.arrow_type)
    get = attrgetter(field.name)

    def build(messages: Sequence[Message]) -> pa.Array:
        maps = list(map(get, messages))
        keys = key.build(list(chain.from_iterable(maps)))
        values = value.build([each[name] for each in maps for name in each])
        return pa.MapArray.from_arrays(_offsets(maps), keys, values, map_type)

    return ColumnPlan(map_type, build)


def _offsets(containers: Sequence[Any]) -> pa.Array:
    return pa.array(accumulate(map(len, containers), initial=0), pa.int32())


def _element_plan(field: FieldDescriptor, above: tuple[str, ...], where: str) -> ColumnPlan:
    """Return the plan of a field's values, or of one of them where they are many."""
    if field.message_type is not None:
        return message_plan(field.message_type, above, where)
    if field.enum_type is not None:
        return _enum_plan(field.enum_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        is_text = field.type == FieldDescriptor.TYPE_STRING
        return _scalar_plan(pa.string() if is_text else pa.binary())
    return _scalar_plan(_SCALARS[field.cpp_type])


def _scalar_plan(arrow_type: pa.DataType) -> ColumnPlan:
    return ColumnPlan(arrow_type, lambda values: pa.array(values, arrow_type))


def _enum_plan(descriptor: EnumDescriptor) -> ColumnPlan:
    """Return the plan for names; a number that has none, as it was added later, stays a number."""
    names: dict[int | None, str | None] = {
        value.number: value.name for value in reversed(descriptor.values)
    }
    names[None] = None

    def build(numbers: Sequence[int | None]) -> pa.Array:
        return pa.array([names.get(each, str(each)) for each in numbers], pa.string())

    return ColumnPlan(pa.string(), build)


def _time_plan(arrow_type: pa.DataType) -> ColumnPlan:
    """Return the plan for seconds and nanoseconds; Spark keeps microseconds."""

    def build(times: Sequence[Any]) -> pa.Array:
        micros = [
            None if each is None else each.seconds * _MICROS + each.nanos // 1000 for each in times
        ]
        return pa.array(micros, arrow_type)

    return ColumnPlan(arrow_type, build)
