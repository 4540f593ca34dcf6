"""Transactions: Apache Kafka 4.3.1 and we answer and record the same."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from moldau.coordination.stored_record import decode_record, record_types
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from moldau.protocol.schema import Struct
from moldau.protocol.stored import transaction_state
from tests.conformance.brokers import run_apache, run_moldau
from tests.conformance.transaction_script import TOPIC, Script
from tests.wire import LATEST, Wire

LATEST_LEVEL: Final = 2
SAFE_DOWNGRADE: Final = 2
LOG: Final = "__transaction_state"
# What differs by nature: times, and what is drawn by lot. Words may be ours where Kafka has none.
NATURE: Final = (
    "throttle_time_ms",
    "topic_id",
    "last_timestamp",
    "transaction_start_time_ms",
    "transaction_start_timestamp_ms",
    "transaction_last_update_timestamp_ms",
)
SETTINGS: Final = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}

Found = tuple[dict[str, Any], list[Any]]


@pytest.fixture(
    scope="module",
    params=[2, pytest.param(1, marks=pytest.mark.long), pytest.param(0, marks=pytest.mark.long)],
)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[Found]:
    """Run the script with both, at a level of transaction.version."""
    found = []
    for run, settings in ((run_apache, {}), (run_moldau, {"durability": "page-cache"})):
        directory = tmp_path_factory.mktemp("node")
        with (
            run(directory, SETTINGS | settings) as broker,
            Wire(broker.host, broker.port) as wire,
        ):
            _set_level(wire, request.param)
            wire.create_topic(TOPIC, partitions=4)
            found.append((Script(wire).run(request.param), _records(wire)))
    return found


def test_answers_are_the_same(both: Sequence[Found]) -> None:
    (theirs, _), (ours, _) = both
    assert len(theirs) > 70
    differences = [
        f"{name}\n  Kafka: {_shown(theirs[name])}\n  ours:  {_shown(ours[name])}"
        for name in theirs
        if _shown(theirs[name]) != _shown(ours[name])
    ]
    assert not differences, f"{len(differences)} answers differ:\n" + "\n".join(differences)


def test_records_are_the_same(both: Sequence[Found]) -> None:
    (_, theirs), (_, ours) = both
    assert len(theirs) > 20
    assert theirs == ours


def _set_level(wire: Wire, level: int) -> None:
    if level == LATEST_LEVEL:
        return
    update = FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    assert wire.call(request, UpdateFeaturesResponse, 2).error_code == 0


def _records(wire: Wire) -> list[Any]:
    """Return the coordinator's records, with the versions that they are written in."""
    types = record_types(transaction_state)
    end = wire.list_offset(LOG, LATEST).offset
    _, records = wire.read(LOG, count=end)
    found = []
    for record in records:
        decoded = decode_record(types, record.key, record.value)
        assert decoded is not None, "it is one of a transaction"
        version = None if record.value is None else int.from_bytes(record.value[:2])
        found.append((version, *(_shown(each) for each in decoded)))
    return found


def _shown(value: Any) -> Any:
    """Return a message without what differs by nature: of that only whether it is there."""
    if isinstance(value, Struct):
        return {
            field.name: (
                getattr(value, field.name) not in (0, -1, "", None, bytes(16))
                if field.name in NATURE
                else _shown(getattr(value, field.name))
            )
            for field in value._fields
            if field.name != "error_message"
        }
    if isinstance(value, tuple | list):
        return [_shown(item) for item in value]
    return value
