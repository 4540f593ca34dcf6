import pytest

from moldau.metadata.bootstrap import bootstrap_records
from moldau.metadata.features import (
    LATEST_LEVEL,
    LEVELS,
    LOWEST_LEVEL,
    OPENED,
    SUPPORTED,
    default_levels,
    find_level,
    loses_records,
    name_of_level,
    needed_metadata_level,
    record_version,
    refuse_level,
)
from moldau.metadata.record_frame import RECORD_TYPES
from moldau.protocol.stored.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def test_levels() -> None:
    assert (LOWEST_LEVEL, LATEST_LEVEL) == (7, 33)
    assert [level.level for level in LEVELS] == list(range(7, 34))
    assert name_of_level(30) == "4.3-IV0"
    assert LEVELS[-1].name == "4.4-IV2"


@pytest.mark.parametrize(
    ("release", "level"),
    [("4.3", 30), ("4.3-IV0", 30), ("4.4", 33), ("3.3", 7), ("4.0-IV1", 23), ("3.7", 19)],
)
def test_releases(release: str, level: int) -> None:
    assert find_level(release) == level


@pytest.mark.parametrize("release", ["", "3.2", "4.5", "4.3-IV1", "30"])
def test_no_releases(release: str) -> None:
    assert find_level(release) is None


@pytest.mark.parametrize(
    ("level", "versions"),
    [
        (7, (1, 0, 0, 1)),
        (8, (2, 0, 0, 1)),
        (16, (2, 0, 0, 1)),
        (17, (3, 1, 1, 2)),
        (22, (3, 1, 1, 2)),
        (23, (3, 2, 2, 2)),
        (29, (3, 2, 2, 2)),
        (30, (4, 2, 2, 3)),
        (33, (4, 2, 2, 3)),
    ],
)
def test_versions_of_records(level: int, versions: tuple[int, ...]) -> None:
    kinds = (
        RegisterBrokerRecord,
        PartitionRecord,
        PartitionChangeRecord,
        BrokerRegistrationChangeRecord,
    )
    assert tuple(record_version(kind, level) for kind in kinds) == versions
    assert record_version(TopicRecord, level) == 0


def test_the_latest_level_writes_the_latest_versions() -> None:
    for cls in RECORD_TYPES.values():
        assert record_version(cls, LATEST_LEVEL) == cls._versions[1]


def test_a_new_cluster() -> None:
    assert default_levels(7) == {"metadata.version": 7}
    # As StorageTool of Apache Kafka 4.3.1 formats, but for streams.version.
    assert [(record.name, record.feature_level) for record in bootstrap_records(30)] == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 1),
        ("transaction.version", 2),
    ]
    assert default_levels(33)["share.version"] == 2
    for level in range(LOWEST_LEVEL, LATEST_LEVEL + 1):
        levels = default_levels(level)
        assert all(needed_metadata_level(name, levels[name]) <= level for name in levels)
        assert all(refuse_level(name, value) is None for name, value in levels.items())


def test_levels_that_lose_records() -> None:
    assert loses_records(30, 29)
    assert not loses_records(29, 23)
    assert loses_records(29, 22)


def test_what_is_not_offered_is_opened() -> None:
    """A directory of Apache Kafka's has streams.version 1, and so have older ones of ours."""
    assert 1 not in SUPPORTED["streams.version"]
    assert refuse_level("streams.version", 1) is None


def test_levels_beyond_ours() -> None:
    for name, supported in OPENED.items():
        refusal = refuse_level(name, supported.highest + 1)
        assert refusal is not None
        assert "\n" not in refusal
        assert str(supported.highest) in refusal
    assert refuse_level("no.such.version", 1) is not None
