"""`kafka-dump-log` decodes what coordinators keep: offsets, groups, transactions, share groups."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.answers import consumer, offsets, share, transactions
from tests.conformance.answers.questioner import Questioner, served_versions
from tests.conformance.answers.setting import SETTINGS, prepare
from tests.conformance.brokers import run_broker
from tests.conformance.jars import run_java
from tests.wire import Wire, wait_for

DUMP = "org.apache.kafka.tools.DumpLogSegments"
RECORD = re.compile(r" key: (\{.*\}) payload: (\{.*\}|<DELETE>)$")
MARKER = " endTxnMarker: "
# The types of records in __consumer_offsets, of __transaction_state's states and of share groups.
OFFSETS_AND_CLASSIC, CONSUMER, SHARE = (1, 2), (3, 5, 6, 7, 8, 16), (10, 11, 12, 13, 14, 15)
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
SNAPSHOT = 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has served groups and transactions, and was stopped."""
    directory = tmp_path_factory.mktemp("node")
    with run_broker(directory, SETTINGS) as broker:
        with Wire(broker.host, broker.port) as wire:
            versions = served_versions(wire)
        asked = Questioner(broker, versions)
        try:
            prepare(asked)
            for script in (offsets, consumer, transactions, share):
                script.ask(asked)
            subscribe_by_pattern(asked)
        finally:
            asked.close()
    return directory / "data"


def subscribe_by_pattern(asked: Questioner) -> None:
    """Have a pattern's topics kept, which Kafka looks for beside the requests."""
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": "[ab]"}
    request = consumer.joining("by-pattern", consumer.FIRST, **fields)

    def is_assigned() -> bool:
        assignment = asked.call(request).assignment
        return assignment is not None and len(assignment.topic_partitions) == 2

    wait_for(is_assigned)


def dump(folder: Path, decoder: str) -> list[tuple[Any, Any]]:
    """Decode a partition; return its records, each a key and a value or None."""
    files = ",".join(map(str, sorted(folder.glob("*.log"))))
    done = run_java(folder, DUMP, "--files", files, decoder)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| offset:")]
    assert lines
    strange = [line for line in lines if not RECORD.search(line) and MARKER not in line]
    assert not strange
    return [
        (json.loads(match[1]), None if match[2] == "<DELETE>" else json.loads(match[2]))
        for match in map(RECORD.search, lines)
        if match
    ]


def test_groups_and_offsets(data: Path) -> None:
    records = dump(data / "__consumer_offsets-0", "--offsets-decoder")
    kinds = {int(key["type"]) for key, _ in records}
    assert kinds >= {*OFFSETS_AND_CLASSIC, *CONSUMER, *SHARE}
    committed = [
        value["data"]
        for key, value in records
        if key == {"type": "1", "data": {"group": "alone-2", "topic": "a", "partition": 1}}
    ]
    assert [(each["offset"], each["metadata"]) for each in committed] == [(7, "some words")]
    joined = [
        value["data"]
        for key, value in records
        if key == {"type": "2", "data": {"group": "member-3"}} and value["data"]["members"]
    ]
    assert [(each["protocolType"], each["generation"]) for each in joined] == [("consumer", 1)]
    [member] = joined[0]["members"]
    assert member["subscription"] == {"topics": ["a"], "userData": None}
    # What was deleted last is gone: a group's last record is a tombstone.
    last = {json.dumps(key): value for key, value in records}
    assert last['{"type": "2", "data": {"group": "alone-4"}}'] is None


def test_transactions(data: Path) -> None:
    records = dump(data / "__transaction_state-0", "--transaction-log-decoder")
    steps: dict[str, list[tuple[int, int]]] = {}
    for key, value in records:
        state = value["data"]
        step = (state["transactionStatus"], state["producerEpoch"])
        steps.setdefault(key["data"]["transactionalId"], []).append(step)
    ongoing, twice = (ONGOING, 0), [(ONGOING, 0)] * 2
    assert steps["of-today"] == [
        *[(EMPTY, 0), *twice, (PREPARE_COMMIT, 1), (COMPLETE_COMMIT, 1)],
        *[(ONGOING, 1), (PREPARE_ABORT, 2), (COMPLETE_ABORT, 2)],
        *[(PREPARE_ABORT, 3), (COMPLETE_ABORT, 3)],
    ]
    # The older protocol keeps the epoch.
    assert steps["ended-2"] == [
        *[(EMPTY, 0), ongoing, (PREPARE_COMMIT, 0), (COMPLETE_COMMIT, 0)],
        *[ongoing, (PREPARE_ABORT, 0), (COMPLETE_ABORT, 0)],
    ]
    ended = [(EMPTY, 0), ongoing, (PREPARE_ABORT, 1), (COMPLETE_ABORT, 1)]
    assert steps["timed-out"] == [*ended, (EMPTY, 1)]
    assert steps["left-open"] == [*ended, (EMPTY, 2)]


def test_share_groups(data: Path) -> None:
    records = dump(data / "__share_group_state-0", "--share-group-state-decoder")
    kept = [(key, value) for key, value in records if key["data"]["groupId"] == "share-fetch"]
    kinds = [int(key["type"]) for key, _ in kept]
    assert kinds[0] == SNAPSHOT
    # The first four were accepted: done, after one delivery.
    batches = [batch for _, value in kept for batch in value["data"]["stateBatches"]]
    accepted = {"firstOffset": 0, "lastOffset": 3, "deliveryState": 2, "deliveryCount": 1}
    assert accepted in batches
    assert max(value["data"]["startOffset"] for _, value in kept) == 5
