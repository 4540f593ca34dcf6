"""Feature levels: what each level of `metadata.version` means, and which may follow which.

The levels and their names are Kafka's (4.4): a cluster's log is written so that every release that
supports its level can read it.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class LevelRange(NamedTuple):
    """The levels of a feature that a node supports, both ends included."""

    lowest: int
    highest: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.lowest <= level <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest} to {self.highest}"


class MetadataLevel(NamedTuple):
    """A level of `metadata.version`."""

    level: int
    name: str
    changes_records: bool
    """Whether a level below would lose something that is written from here on."""

    @property
    def release(self) -> str:
        """The release that brought it, such as 4.3."""
        return self.name.partition("-")[0]


LEVELS: Final = tuple(
    MetadataLevel(level, name, changes_records=changes)
    for level, (name, changes) in enumerate(
        [
            ("3.3-IV3", True),
            ("3.4-IV0", True),
            ("3.5-IV0", False),
            ("3.5-IV1", False),
            ("3.5-IV2", True),  # SCRAM
            ("3.6-IV0", False),
            ("3.6-IV1", True),  # transactions of metadata
            ("3.6-IV2", True),  # delegation tokens
            ("3.7-IV0", True),  # registered controllers
            ("3.7-IV1", False),
            ("3.7-IV2", True),  # directories of replicas
            ("3.7-IV3", False),
            ("3.7-IV4", False),
            ("3.8-IV0", False),
            ("3.9-IV0", False),
            ("4.0-IV0", False),
            ("4.0-IV1", True),  # eligible leader replicas
            ("4.0-IV2", False),
            ("4.0-IV3", False),
            ("4.1-IV0", False),
            ("4.1-IV1", False),
            ("4.2-IV0", False),
            ("4.2-IV1", False),
            ("4.3-IV0", True),  # cordoned directories
            ("4.4-IV0", False),
            ("4.4-IV1", True),  # address ranges in access control entries
            ("4.4-IV2", True),  # unregistered controllers
        ],
        start=7,
    )
)
LOWEST_LEVEL: Final = LEVELS[0].level
LATEST_LEVEL: Final = LEVELS[-1].level

# The first levels that have what their names say.
SCRAM: Final = 11
LEADER_EPOCH_STAYS_ON_SHRINK: Final = 12
TRANSACTIONS: Final = 13
CONTROLLER_REGISTRATIONS: Final = 15
DIRECTORIES: Final = 17
ELIGIBLE_LEADERS: Final = 23
CORDONED_DIRECTORIES: Final = 30

SUPPORTED: Final[Mapping[str, LevelRange]] = {
    METADATA_VERSION: LevelRange(LOWEST_LEVEL, LATEST_LEVEL),
    KRAFT_VERSION: LevelRange(0, 1),
    TRANSACTION_VERSION: LevelRange(0, 2),
    GROUP_VERSION: LevelRange(0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: LevelRange(0, 1),
    SHARE_VERSION: LevelRange(0, 2),
    STREAMS_VERSION: LevelRange(0, 0),
}
"""What is served here, and may be chosen."""

OPENED: Final[Mapping[str, LevelRange]] = {**SUPPORTED, STREAMS_VERSION: LevelRange(0, 1)}
"""What a cluster may have that a node is part of. Apache Kafka finalizes streams.version 1; the
requests of KIP-1071 that this allows are not served, and clients see that in ApiVersions."""

# With which level of metadata.version a new cluster gets which level of the others. The level of
# kraft.version is not among them: it is written by the quorum, not by the controller.
_DEFAULTS: Final = (
    (22, GROUP_VERSION, 1),
    (24, TRANSACTION_VERSION, 2),
    (26, ELIGIBLE_LEADER_REPLICAS_VERSION, 1),
    (28, SHARE_VERSION, 1),
    (31, SHARE_VERSION, 2),
)

_NEEDS: Final = {(ELIGIBLE_LEADER_REPLICAS_VERSION, 1): ELIGIBLE_LEADERS}

# The first level of metadata.version at which each later version of a record may be written.
_RECORD_VERSIONS: Final[Mapping[type[Message], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((CORDONED_DIRECTORIES, 4), (DIRECTORIES, 3), (8, 2), (LOWEST_LEVEL, 1)),
    PartitionRecord: ((ELIGIBLE_LEADERS, 2), (DIRECTORIES, 1)),
    PartitionChangeRecord: ((ELIGIBLE_LEADERS, 2), (DIRECTORIES, 1)),
    BrokerRegistrationChangeRecord: (
        (CORDONED_DIRECTORIES, 3),
        (DIRECTORIES, 2),
        (LOWEST_LEVEL, 1),
    ),
}


def record_version(record: type[Message], level: int) -> int:
    """Return the version in which a record is written at this level of metadata.version."""
    for first_level, version in _RECORD_VERSIONS.get(record, ()):
        if level >= first_level:
            return version
    return 0


def find_level(release: str) -> int | None:
    """Return the level that a release (4.3) or an exact name (4.3-IV0) stands for."""
    for level in reversed(LEVELS):
        if release in (level.name, level.release):
            return level.level
    return None


def name_of_level(level: int) -> str:
    """Return the name of a supported level of metadata.version."""
    return LEVELS[level - LOWEST_LEVEL].name


def default_levels(level: int) -> dict[str, int]:
    """Return the features of a new cluster at this level of metadata.version, by name."""
    # Of two rows for one feature the later counts.
    defaults = {name: value for first_level, name, value in _DEFAULTS if level >= first_level}
    return {METADATA_VERSION: level} | defaults


def feature_records(levels: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """Return records that set these levels, metadata.version first: the others build on it."""
    names = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    return [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in names]


def loses_records(current: int, level: int) -> bool:
    """Whether a lower level of metadata.version cannot hold what the current one has written."""
    return any(each.changes_records for each in LEVELS if level < each.level <= current)


def needed_metadata_level(name: str, level: int) -> int:
    """Return the level of metadata.version that a feature's level needs."""
    return max(
        (needed for (each, first), needed in _NEEDS.items() if each == name and level >= first),
        default=LOWEST_LEVEL,
    )


def refuse_level(name: str, level: int) -> str | None:
    """Say in one line why a log with this level cannot be opened here, None if it can."""
    supported = OPENED.get(name)
    if supported is None:
        return f"the cluster uses the feature {name} (level {level}), which is not known here"
    if level in supported:
        return None
    return f"the cluster's {name} is {level}, and this release supports {supported}"
