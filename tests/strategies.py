"""Hypothesis strategies: random values for any declared message, and the list of all messages."""

import importlib
import os
import pkgutil
from collections.abc import Callable
from functools import cache

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import moldau.protocol.messages
import moldau.protocol.stored
from moldau.protocol.schema import Array, Field, FieldType, Message, Struct, Type

# A run that fails prints the example and a line that replays it.
SETTINGS = settings(
    max_examples=int(os.environ.get("MOLDAU_EXAMPLES", "4")),
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)

# A strategy for a field that wants other values than its type has, or None.
Special = Callable[[Field], st.SearchStrategy[object] | None]

PRIMITIVES: dict[str, st.SearchStrategy[object]] = {
    "boolean": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.just(bytes(16)) | st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=8) | st.just("long " * 30),
    "legacy_string": st.text(max_size=8),
    "blob": st.binary(max_size=8) | st.just(b"long " * 30),
    "records": st.binary(max_size=8) | st.just(b"by reference " * 100),
}


@cache
def all_messages() -> tuple[type[Message], ...]:
    """Import every module of declarations; return the messages in them, by name."""
    found = []
    for package in (moldau.protocol.messages, moldau.protocol.stored):
        for module_info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(module_info.name)
            found += [
                value
                for value in vars(module).values()
                if isinstance(value, type)
                and issubclass(value, Message)
                and value.__module__ == module.__name__
            ]
    return tuple(sorted(found, key=lambda cls: (cls.__name__, cls.__module__)))


def versions_of(cls: type[Message]) -> range:
    """Return the versions that a message has."""
    first, last = cls._versions
    return range(first, last + 1)


def all_versions() -> list[tuple[type[Message], int]]:
    """Return every version of every message."""
    return [(cls, version) for cls in all_messages() for version in versions_of(cls)]


def _nothing_special(_: Field) -> None:
    return None


@cache
def structs(
    cls: type[Struct], version: int, special: Special = _nothing_special
) -> st.SearchStrategy[Struct]:
    """Build instances of `cls` whose fields fit `version`; the others keep their defaults."""
    fields = {
        field.name: _field_values(field, version, special)
        for field in cls._fields
        if field.since <= version <= field.until
    }
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


def _field_values(field: Field, version: int, special: Special) -> st.SearchStrategy[object]:
    values = special(field)
    if values is None:
        values = _values(field.type, version, special)
    if field.nullable <= version:
        values = st.none() | values
    if field.tag is not None and not field.default_is_fresh:
        values = st.just(field.default) | values
    return values


def _values(type_: FieldType, version: int, special: Special) -> st.SearchStrategy[object]:
    if isinstance(type_, Type):
        return PRIMITIVES[type_.name]
    if isinstance(type_, Array):
        return st.lists(_values(type_.of, version, special), max_size=2).map(tuple)
    return structs(type_, version, special)
