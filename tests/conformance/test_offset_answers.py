"""Offsets of groups without members: Apache Kafka 4.3.1 and we answer and record the same."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from moldau.coordination.stored_record import decode_record, record_types
from moldau.protocol.apis import APIS
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from moldau.protocol.schema import Message, Struct
from moldau.protocol.stored import offsets
from tests.conformance.brokers import run_apache, run_moldau
from tests.wire import LATEST, Wire, wait_for

TOPIC: Final = "orders"
GROUP: Final = "readers"
LOG: Final = "__consumer_offsets"
NOWHERE: Final = b"?" * 16
RESPONSES: Final = {api.key: api for api in APIS}
# What differs by nature: times, and what is drawn by lot.
NATURE: Final = ("throttle_time_ms", "topic_id", "commit_timestamp", "expire_timestamp")

Asked = tuple[str, Message, int]


def partition(index: int = 0, offset: int = 5, metadata: str | None = "m", **fields: Any) -> Any:
    return OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata=metadata, **fields
    )


def commit(*rows: Any, group: str = GROUP, name: str = TOPIC, **fields: Any) -> OffsetCommitRequest:
    topic_id = fields.pop("topic_id", bytes(16))
    topics = [OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=rows)]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def fetch(version: int, ids: Mapping[str, bytes], **fields: Any) -> OffsetFetchRequest:
    group_id = fields.pop("group_id", GROUP)
    names = fields.pop("names", (TOPIC,))
    stable = fields.pop("require_stable", False)
    if version < 8:
        rows = (
            None
            if names is None
            else [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1, 7]) for name in names]
        )
        return OffsetFetchRequest(group_id=group_id, topics=rows, require_stable=stable)
    topics = (
        None
        if names is None
        else [
            OffsetFetchRequestTopics(
                name=name, topic_id=ids.get(name, NOWHERE), partition_indexes=[0, 1, 7]
            )
            for name in names
        ]
    )
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics, **fields)
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def delete(*rows: int, group: str = GROUP, name: str = TOPIC) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in rows]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions)]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def script(ids: Mapping[str, bytes]) -> Iterator[Asked]:
    topic_id = ids[TOPIC]
    for version in range(1, 11):
        yield f"fetch v{version} of nothing", fetch(version, ids), version
        yield f"fetch v{version} unknown topic", fetch(version, ids, names=("none",)), version
    for version in range(2, 11):
        name = f"v{version}"
        rows = [partition(0, version, name), partition(1, 9, None), partition(7, 9)]
        yield f"commit {name}", commit(*rows, topic_id=topic_id), version
        missing = commit(partition(), name="none", topic_id=NOWHERE)
        yield f"commit {name} unknown topic", missing, version
        yield (
            f"commit {name} to an epoch",
            commit(partition(), group="new", generation_id_or_member_epoch=3, topic_id=topic_id),
            version,
        )
        yield (
            f"commit {name} as a member",
            commit(partition(), generation_id_or_member_epoch=3, member_id="me", topic_id=topic_id),
            version,
        )
        yield (
            f"commit {name} as a name",
            commit(partition(0, 50), member_id="me", topic_id=topic_id),
            version,
        )
        yield (
            f"commit {name} large",
            commit(partition(0, 1, "x" * 4097), partition(1, 1, "x" * 4096), topic_id=topic_id),
            version,
        )
        yield (
            f"commit {name} no group",
            commit(partition(0, 2), group="", topic_id=topic_id),
            version,
        )
        yield f"commit {name} negative", commit(partition(0, -7), topic_id=topic_id), version
        yield f"fetch after {name}", fetch(version, ids), version
        yield f"fetch after {name} no group", fetch(version, ids, group_id=""), version
    for version in range(2, 5):
        retained = commit(partition(0, 1), group="retained", retention_time_ms=60_000)
        yield f"commit v{version} with retention", retained, version
    yield "commit v6 epoch", commit(partition(0, 3, committed_leader_epoch=4)), 6
    yield "commit v7 static", commit(partition(0, 3), group_instance_id="i"), 7
    yield (
        "commit too much",
        commit(*[partition(0, 3, "x" * 4096) for _ in range(300)], group="much"),
        9,
    )
    yield "fetch too much", fetch(9, ids, group_id="much"), 9
    for length in (2048, 2049):
        pairs = "\U0001f600" * length
        yield f"commit {length} pairs", commit(partition(0, 3, pairs), group="pairs"), 9
    yield "commit nothing", commit(group="void"), 9
    for version in range(2, 11):
        yield f"fetch all v{version}", fetch(version, ids, names=None), version
        yield (
            f"fetch all v{version} of nobody",
            fetch(version, ids, names=None, group_id="nobody"),
            version,
        )
        yield f"fetch v{version} of two", fetch(version, ids, names=(TOPIC, "none")), version
    for version in (7, 8, 9):
        yield f"fetch stable v{version}", fetch(version, ids, require_stable=True), version
    for member in ({"member_id": "me", "member_epoch": 1}, {"member_id": "me"}):
        yield f"fetch as {member}", fetch(9, ids, **member), 9
        yield f"fetch as {member} of nobody", fetch(9, ids, group_id="nobody", **member), 9
    several = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=each, topics=None) for each in (GROUP, "nobody", "")
        ]
    )
    yield "fetch of three groups", several, 8
    yield "fetch of no group", OffsetFetchRequest(), 8
    yield "delete in no group", delete(0, group=""), 0
    yield "delete in an unknown group", delete(0, group="nobody"), 0
    yield "delete in an unknown topic", delete(0, name="none"), 0
    yield "delete", delete(1, 7), 0
    yield "delete again", delete(1), 0
    yield "fetch what is deleted", fetch(9, ids, names=None), 9


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Sequence[tuple[dict[str, Any], list[Any]]]:
    found = []
    one = {"offsets.topic.num.partitions": "1"}
    for run, settings in ((run_apache, one), (run_moldau, one | {"durability": "page-cache"})):
        directory = tmp_path_factory.mktemp("node")
        with run(directory, settings) as broker, Wire(broker.host, broker.port) as wire:
            wire.create_topic(TOPIC, partitions=2)
            answers = {
                name: wire.call(request, RESPONSES[request._api_key].response_class, version)
                for name, request, version in script(_ids(wire))
            }
            found.append((answers, _records(wire)))
    return found


def test_answers_are_the_same(both: Sequence[tuple[dict[str, Any], list[Any]]]) -> None:
    (theirs, _), (ours, _) = both
    assert len(theirs) > 150
    differences = [
        f"{name}\n  Kafka: {_shown(theirs[name])}\n  ours:  {_shown(ours[name])}"
        for name in theirs
        if _shown(theirs[name]) != _shown(ours[name])
    ]
    assert not differences, f"{len(differences)} answers differ:\n" + "\n".join(differences)


def test_records_are_the_same(both: Sequence[tuple[dict[str, Any], list[Any]]]) -> None:
    (_, theirs), (_, ours) = both
    assert len(theirs) > 50
    assert theirs == ours


def _ids(wire: Wire) -> Mapping[str, bytes]:
    """Return the topics' ids when the group has its coordinator."""

    def is_ready() -> bool:
        wire.call(FindCoordinatorRequest(key=GROUP), FindCoordinatorResponse, 1)
        answer = wire.call(fetch(7, {}), OffsetFetchResponse, 7)
        return answer.error_code == 0

    wait_for(is_ready)
    answer = wire.call(MetadataRequest(topics=None), MetadataResponse, 12)
    return {topic.name: topic.topic_id for topic in answer.topics}


def _records(wire: Wire) -> list[Any]:
    """Return the coordinator's records, with the versions that they are written in."""
    types = record_types(offsets)
    found = []
    end = wire.list_offset(LOG, LATEST).offset
    _, records = wire.read(LOG, count=end)
    for record in records:
        decoded = decode_record(types, record.key, record.value)
        assert decoded is not None, "it is one of an offset"
        version = None if record.value is None else int.from_bytes(record.value[:2])
        found.append((version, *(_shown(each) for each in decoded)))
    return found


def _shown(value: Any) -> Any:
    """Return a message without what differs by nature: of that only whether it is there."""
    if isinstance(value, Struct):
        return {
            field.name: (
                getattr(value, field.name) not in (0, -1, bytes(16))
                if field.name in NATURE
                else _shown(getattr(value, field.name))
            )
            for field in value._fields
        }
    if isinstance(value, tuple | list):
        return [_shown(item) for item in value]
    return value
