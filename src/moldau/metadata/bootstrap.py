"""What a new cluster begins with: the files of a formatted directory, the first records."""

from collections.abc import Sequence
from typing import Final

from moldau.kernel.snapshot_id import FIRST_SNAPSHOT
from moldau.metadata.features import (
    METADATA_VERSION,
    TRANSACTIONS,
    default_levels,
    feature_records,
)
from moldau.metadata.snapshot import write_snapshot
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from moldau.protocol.stored.control_records import KRaftVersionRecord, VotersRecord

BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
"""In the log directory: the first records of a cluster that has no log yet."""


def bootstrap_records(level: int) -> list[Message]:
    """Return the records that a new cluster at this level of metadata.version begins with."""
    return list(feature_records(default_levels(level)))


def bootstrap_file(records: Sequence[Message], timestamp: int) -> bytes:
    """Return the bootstrap file with these records."""
    pieces = write_snapshot(
        records,
        level=_level_of(records),
        epoch=0,
        last_log_timestamp=0,
        timestamp=timestamp,
    )
    return b"".join(pieces)


def first_snapshot(voters: VotersRecord, timestamp: int) -> bytes:
    """Return the snapshot that names the first voters of a quorum that can change."""
    pieces = write_snapshot(
        (),
        level=0,
        epoch=FIRST_SNAPSHOT.epoch,
        last_log_timestamp=timestamp,
        timestamp=timestamp,
        control=[KRaftVersionRecord(kraft_version=1), voters],
    )
    return b"".join(pieces)


def first_records(bootstrap: Sequence[Message]) -> list[Message]:
    """Return what the first leader appends to an empty log."""
    if _level_of(bootstrap) < TRANSACTIONS:
        return list(bootstrap)
    return [BeginTransactionRecord(name="Bootstrap records"), *bootstrap, EndTransactionRecord()]


def _level_of(records: Sequence[Message]) -> int:
    for record in records:
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.feature_level
    raise ValueError(f"the bootstrap records do not say the {METADATA_VERSION}")
