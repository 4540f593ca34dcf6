"""Answers that say an error, made from a request or from the answer that it would have got."""

from collections.abc import Sequence
from typing import Any, Final

from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Array, Field, Message, Struct

READING: Final = frozenset(
    {
        "ApiVersions",
        "ConsumerGroupDescribe",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeShareGroupOffsets",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "Fetch",
        "FindCoordinator",
        "ListConfigResources",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "ReadShareGroupStateSummary",
        "ShareGroupDescribe",
    }
)
"""APIs that change nothing: they are handled, and their answers get the error. All others are
answered from the request alone, so that nothing happens."""

_BY_ELEMENT: Final = frozenset({"FetchResponse", "MetadataResponse"})
"""Answers whose own error is about the client as a whole, while each topic or partition has its
own as well."""

_CODE: Final = "error_code"


def refusal(request: Message, response: type[Message], version: int, code: ErrorCode) -> Message:
    """Return an answer that has for all that was asked the same error."""
    refused: Message = _mirrored(request, response, version, code)
    return refused


def spoiled(response: Message, version: int, code: ErrorCode) -> Message:
    """Return a copy of an answer, with an error where clients look for it first."""
    if type(response).__name__ not in _BY_ELEMENT:
        result: Message = _spoiled(response, version, code)
        return result
    by_element: Message = _with_spoiled_elements(response, version, code)
    is_empty = not any(getattr(by_element, field.name) for field in _answers(response, version))
    has_own = any(field.name == _CODE for field in _fields(response, version))
    if is_empty and has_own:
        by_element.error_code = code  # type: ignore[attr-defined]
    return by_element


def _spoiled(struct: Any, version: int, code: ErrorCode) -> Any:
    if any(field.name == _CODE for field in _fields(struct, version)):
        return _changed(struct, {_CODE: code})
    return _with_spoiled_elements(struct, version, code)


def _with_spoiled_elements(struct: Any, version: int, code: ErrorCode) -> Any:
    changes: dict[str, object] = {
        field.name: [_spoiled(each, version, code) for each in getattr(struct, field.name) or ()]
        for field in _answers(struct, version)
    }
    return _changed(struct, changes)


def _mirrored(asked: object, answer: type[Struct], version: int, code: ErrorCode) -> Any:
    """Return a struct of an answer for the part of a request that it answers."""
    values = _shared_values(asked, answer, version)
    if any(field.name == _CODE for field in _fields(answer, version)):
        return answer(**values | {_CODE: code})
    for field in _answers(answer, version)[:1]:
        assert isinstance(field.type, Array)
        assert isinstance(field.type.of, type)
        values[field.name] = [
            _mirrored(each, field.type.of, version, code) for each in _elements(asked, version)
        ]
    return answer(**values)


def _shared_values(asked: object, answer: type[Struct], version: int) -> dict[str, object]:
    """Return what names the thing in both: a topic and its id, a partition, a resource."""
    plain = [field for field in _fields(answer, version) if not _is_nested(field)]
    if not isinstance(asked, Struct):
        # A bare name or number: the first field that is not the error names the thing.
        return {next(field.name for field in plain if field.name != _CODE): asked}
    known = {field.name for field in _fields(asked, version)}
    return {field.name: getattr(asked, field.name) for field in plain if field.name in known}


def _elements(asked: object, version: int) -> Sequence[object]:
    """Return what a part of a request asks about: its first array has the topics, the names."""
    assert isinstance(asked, Struct)
    for field in _fields(asked, version):
        if isinstance(field.type, Array):
            return getattr(asked, field.name) or ()
    return ()


def _fields(struct: Struct | type[Struct], version: int) -> list[Field]:
    return [field for field in struct._fields if field.since <= version <= field.until]


def _answers(struct: Struct | type[Struct], version: int) -> list[Field]:
    """Return the arrays that have an error in each element, or in the elements' elements."""
    return [field for field in _fields(struct, version) if _has_code(field, version)]


def _has_code(field: Field, version: int) -> bool:
    element = field.type.of if isinstance(field.type, Array) else None
    if not isinstance(element, type):
        return False
    return any(
        inner.name == _CODE or _has_code(inner, version) for inner in _fields(element, version)
    )


def _is_nested(field: Field) -> bool:
    return isinstance(field.type, Array | type)


def _changed(struct: Any, changes: dict[str, object]) -> Any:
    values = {field.name: getattr(struct, field.name) for field in struct._fields}
    return type(struct)(**values | changes)
