"""The same requests of producers and consumers, answered by Apache Kafka 4.3.1 and by us."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from moldau.protocol.apis import APIS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.fetch import FetchPartition, ForgottenTopic
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from moldau.protocol.schema import Message, Struct
from tests.conformance.brokers import run_apache, run_moldau
from tests.conformance.clients.client import Client
from tests.conformance.clients.librdkafka import Librdkafka
from tests.conformance.clients.programs import java
from tests.conformance.data_script import (
    COMPRESSED,
    TOPICS,
    WRONG_DELTAS,
    fetch,
    numbered,
    script,
    sessions,
    wanted,
)
from tests.wire import Wire, wait_for

# What differs by nature: words, places, times and what is drawn by lot.
NATURE: Final = {
    "host",
    "last_timestamp",
    "log_append_time_ms",
    "port",
    "rack",
    "session_id",
    "throttle_time_ms",
    "timestamp",
    "topic_id",
}
RESPONSES: Final = {api.key: api for api in APIS}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Message, Message]]:
    both = []
    for run, settings in ((run_apache, {}), (run_moldau, {"durability": "page-cache"})):
        directory = tmp_path_factory.mktemp("node")
        with run(directory, settings) as broker, Wire(broker.host, broker.port) as wire:
            both.append(dict(_ask_all(wire)))
    kafkas, ours = both
    assert kafkas.keys() == ours.keys()
    return {name: (kafkas[name], ours[name]) for name in kafkas}


def test_answers_are_the_same(answers: Mapping[str, tuple[Message, Message]]) -> None:
    assert len(answers) > 120
    differences = [
        f"{name}\n  Kafka: {theirs}\n  ours:  {ours}"
        for name, (theirs, ours) in (
            (name, (_shown(kafkas), _shown(our))) for name, (kafkas, our) in answers.items()
        )
        if theirs != ours and not name.startswith(COMPRESSED)
    ]
    assert not differences, f"{len(differences)} answers differ:\n" + "\n".join(differences)


def test_compressed_records_with_wrong_numbers(
    answers: Mapping[str, tuple[Message, Message]],
) -> None:
    """Kafka fails at them; we say whose fault it is (docs/adr/0006)."""
    codes = {
        tuple(answer.responses[0].partition_responses[0].error_code for answer in both)
        for name, both in answers.items()
        if name.startswith(COMPRESSED)
    }
    assert codes == {(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_RECORD)}


@pytest.mark.parametrize("make", [Librdkafka, java], ids=["librdkafka", "java"])
def test_every_client_reads_records_that_were_numbered_anew(
    make: Callable[[str], Client], tmp_path: Path
) -> None:
    """From Kafka, Java's consumer gets one record of three, and may miss more behind them."""
    values = [f"v{n}" for n in range(3)] * len(WRONG_DELTAS)
    with run_moldau(tmp_path, {}) as broker, Wire(broker.host, broker.port) as wire:
        wire.create_topic("numbered")
        for deltas in WRONG_DELTAS:
            assert wire.produce("numbered", numbered(deltas)).error_code == 0
        _, records = wire.read("numbered", count=len(values))
        assert [record.offset for record in records] == list(range(len(values)))
        client = make(broker.bootstrap_servers)
        try:
            read = client.consume("numbered", 0, 0, len(values))
            assert [row.value for row in read] == values
        finally:
            client.close()


def _ask_all(wire: Wire) -> Iterator[tuple[str, Message]]:
    ids = _create_topics(wire)
    for name, request, version in script(ids):
        yield name, _ask(wire, request, version)
    session_id = 0
    for name, request, version in sessions(ids):
        request.session_id = session_id
        request.topics = [topic for topic in request.topics if topic.partitions]
        answer = _ask(wire, request, version)
        session_id = session_id or answer.session_id
        yield name, answer
    yield from _replace_a_topic(wire)


def _replace_a_topic(wire: Wire) -> Iterator[tuple[str, Message]]:
    """A session remembers the name that a topic's id had, also when the topic is gone."""
    name = "replaced"
    wire.create_topic(name, partitions=2)
    old = _topic_id(wire, name)

    def in_session(epoch: int, *partitions: FetchPartition, **fields: Any) -> Any:
        request = fetch(fields.pop("topic_id", old), *partitions, session_epoch=epoch, **fields)
        request.topics = request.topics if partitions else ()
        return _ask(wire, request, 18)

    answer = in_session(0, wanted(0), wanted(1))
    yield "session of a topic", answer
    session = {"session_id": answer.session_id}
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
    wire.call(delete, DeleteTopicsResponse, 6)
    wait_for(lambda: not _topic_id(wire, name))
    yield "session of a deleted topic", in_session(1, **session)
    yield "session, more of a deleted topic", in_session(2, wanted(7), **session)
    yield "fetch of a deleted topic", in_session(-1, wanted(0))
    wire.create_topic(name, partitions=2)
    new = _topic_id(wire, name)
    yield "session of a topic that is there again", in_session(3, **session)
    forgotten = [ForgottenTopic(topic_id=old, partitions=[7])]
    yield "session with less", in_session(4, forgotten_topics_data=forgotten, **session)
    yield "session of both topics", in_session(5, wanted(0), topic_id=new, **session)
    forgotten = [ForgottenTopic(topic_id=old, partitions=[0, 1])]
    yield "session of the new one", in_session(6, forgotten_topics_data=forgotten, **session)


def _topic_id(wire: Wire, name: str) -> bytes:
    """Return a topic's id, nothing if there is no such topic."""
    asked = [MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    [topic] = wire.call(request, MetadataResponse, 12).topics
    return b"" if topic.error_code else bytes(topic.topic_id)


def _create_topics(wire: Wire) -> dict[str, bytes]:
    """Create the topics; return their ids when they can be used."""
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=configs[key]) for key in configs],
        )
        for name, configs in TOPICS.items()
    ]
    wire.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), CreateTopicsResponse, 7)
    ids: dict[str, bytes] = {}

    def is_complete() -> bool:
        answer = wire.call(MetadataRequest(topics=None), MetadataResponse, 12)
        ids.update({topic.name: topic.topic_id for topic in answer.topics})
        return ids.keys() >= TOPICS.keys() and all(_is_led(wire, name) for name in TOPICS)

    wait_for(is_complete)
    return ids


def _is_led(wire: Wire, topic: str) -> bool:
    partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1)]
    topics = [ListOffsetsTopic(name=topic, partitions=partitions)]
    answer = wire.call(ListOffsetsRequest(replica_id=-1, topics=topics), ListOffsetsResponse, 5)
    return not any(row.error_code for row in answer.topics[0].partitions)


def _ask(wire: Wire, request: Message, version: int) -> Any:
    return wire.call(request, RESPONSES[request._api_key].response_class, version)


def _shown(value: Any) -> Any:
    """Return an answer without what differs by nature: of that only whether it is there.

    The order of partitions means nothing."""
    if isinstance(value, Struct):
        return {
            field.name: (
                getattr(value, field.name) not in (None, "", -1, 0, bytes(16))
                if field.name in NATURE
                else _shown(getattr(value, field.name))
            )
            for field in value._fields
            if not field.name.endswith("message") and field.name != "records"
        } | ({"has_records": bool(value.records)} if hasattr(value, "records") else {})
    if isinstance(value, tuple | list):
        return sorted((_shown(item) for item in value), key=repr)
    return value
