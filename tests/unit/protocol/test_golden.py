"""Kafka's own bytes decode to Kafka's own values and encode back: every message, every version.

tools/golden_vectors.py made the vectors with the clients of 4.4.0, those of 3.9.1 for the versions
that Kafka 4.0 removed, and the server of 4.3.1 for the records that it stores.
"""

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.schema import Array, FieldType, Message, Struct
from tests.strategies import all_messages, all_versions

GOLDEN = Path(__file__).parents[2] / "golden"


@cache
def vectors() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return the vectors by the message's name and version."""
    found = defaultdict(list)
    for path in sorted(GOLDEN.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            vector = json.loads(line)
            found[vector["name"], vector["version"]].append(vector)
    return found


def assert_same(ours: object, theirs: object, type_: FieldType) -> None:
    """Check a decoded value against the JSON of a vector, which has Kafka's names squashed."""
    if isinstance(ours, Struct):
        assert isinstance(theirs, dict)
        rest = dict(theirs)
        for field in ours._fields:
            value = getattr(ours, field.name)
            squashed = field.name.replace("_", "")
            if squashed in rest:
                assert_same(value, rest.pop(squashed), field.type)
            else:  # younger than the release that made the vector
                assert value == field.default
        assert not any(rest.values())  # fields of versions that are not declared
    elif isinstance(type_, Array) and ours is not None:
        assert isinstance(ours, tuple)
        assert isinstance(theirs, list)
        for our_element, their_element in zip(ours, theirs, strict=True):
            assert_same(our_element, their_element, type_.of)
    elif isinstance(ours, bytes | memoryview):
        assert ours.hex() == theirs
    else:
        assert ours == theirs


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_kafkas_bytes_have_kafkas_values(cls: type[Message]) -> None:
    first, last = cls._versions
    for version in range(first, last + 1):
        for vector in vectors()[cls.__name__, version]:
            data = bytes.fromhex(vector["bytes"])
            message = cls.decode(data, version)
            assert_same(message, vector["values"], cls)
            assert message.encode(version) == data


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_kafkas_defaults_are_ours(cls: type[Message]) -> None:
    for version in range(cls._versions[0], cls._versions[1] + 1):
        defaults = vectors()[cls.__name__, version][0]
        assert cls().encode(version) == bytes.fromhex(defaults["bytes"])


def test_every_version_of_every_message_has_vectors() -> None:
    declared = {(cls.__name__, version) for cls, version in all_versions()}
    assert declared == set(vectors())
