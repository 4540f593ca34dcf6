"""Kafka 4.4's own table of feature levels says the same as ours."""

import pytest

from moldau.metadata.features import (
    CONTROLLER_REGISTRATIONS,
    KRAFT_VERSION,
    LEADER_EPOCH_STAYS_ON_SHRINK,
    LEVELS,
    METADATA_VERSION,
    OPENED,
    STREAMS_VERSION,
    SUPPORTED,
    TRANSACTIONS,
    default_levels,
    needed_metadata_level,
    record_version,
)
from moldau.protocol.stored.cluster_metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from tests.conformance import jars


@pytest.fixture(scope="module")
def table() -> list[list[str]]:
    return [line.split() for line in jars.run("FeatureLevels").splitlines()]


def test_levels(table: list[list[str]]) -> None:
    theirs = [row[1:] for row in table if row[0] == "level"]
    ours = [
        [
            level.level,
            level.name,
            level.changes_records,
            record_version(RegisterBrokerRecord, level.level),
            record_version(PartitionRecord, level.level),
            record_version(PartitionChangeRecord, level.level),
            level.level >= TRANSACTIONS,
            level.level >= CONTROLLER_REGISTRATIONS,
            level.level < LEADER_EPOCH_STAYS_ON_SHRINK,
        ]
        for level in LEVELS
    ]
    assert theirs == [
        [str(value).replace("T", "t").replace("F", "f") for value in row] for row in ours
    ]


def test_features(table: list[list[str]]) -> None:
    theirs = {row[1]: (int(row[2]), int(row[3])) for row in table if row[0] == "feature"}
    ours = {name: tuple(levels) for name, levels in OPENED.items() if name != METADATA_VERSION}
    assert theirs == ours
    assert {name for name in OPENED if OPENED[name] != SUPPORTED[name]} == {STREAMS_VERSION}
    for _, name, level, default in (row for row in table if row[0] == "default"):
        # The quorum keeps one of them, and the requests of another are not served here.
        if name not in (KRAFT_VERSION, STREAMS_VERSION):
            assert default_levels(int(level)).get(name, 0) == int(default)


def test_dependencies(table: list[list[str]]) -> None:
    needs = [row[1:] for row in table if row[0] == "need"]
    assert len(needs) == 1
    for name, level, needed, needed_level in needs:
        assert needed == METADATA_VERSION
        assert needed_metadata_level(name, int(level)) == int(needed_level)
        assert needed_metadata_level(name, int(level) - 1) <= LEVELS[0].level
