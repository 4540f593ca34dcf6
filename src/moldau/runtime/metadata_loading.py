"""Loading the cluster's metadata: the latest snapshot, then the log behind it, in slices."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from moldau._native.records import Batch, read_batches
from moldau.consensus.voters import VoterHistory
from moldau.kernel.ids import Offset
from moldau.metadata.batches import decode_batch
from moldau.metadata.bootstrap import BOOTSTRAP_FILE, bootstrap_records
from moldau.metadata.image import ClusterImage
from moldau.metadata.snapshot import read_snapshot
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import RemoveTopicRecord
from moldau.records.batch import read_records
from moldau.records.control import QuorumValue, read_control_record
from moldau.runtime.metadata_log import MetadataLog


@dataclass(slots=True)
class LoadedMetadata:
    """What the log says."""

    image: ClusterImage
    history: VoterHistory
    removed_ids: set[bytes] = field(default_factory=set)
    """Topics whose deletion is in the log: their files may still be there."""
    bytes_since_snapshot: int = 0


async def load_metadata(log: MetadataLog, history: VoterHistory) -> LoadedMetadata:
    """Replay everything; `ReplayError` and its kind if this release cannot."""
    loaded = LoadedMetadata(ClusterImage(), history)
    start = Offset(0)
    if log.snapshots:
        latest = log.snapshots[-1]
        start = latest.id.end_offset
        snapshot = read_snapshot(log.waiting.read(latest.path, 0, latest.size))
        for value in snapshot.control:
            history.replay(value, start - 1)
        for number, record in enumerate(snapshot.records):
            loaded.image.replay(record)
            if number % 1000 == 0:
                await asyncio.sleep(0)
    for piece in log.pieces(start):
        for batch in read_batches(piece):
            if batch.base_offset >= start:
                _replay(loaded, piece, batch)
        await asyncio.sleep(0)
    return loaded


def _replay(loaded: LoadedMetadata, data: bytes, batch: Batch) -> None:
    loaded.bytes_since_snapshot += batch.size
    if batch.is_control:
        for offset, value in _control_values(data, batch):
            loaded.history.replay(value, offset)
        return
    for record in decode_batch(data, batch):
        loaded.image.replay(record)
        if isinstance(record, RemoveTopicRecord):
            loaded.removed_ids.add(record.topic_id)


def _control_values(data: bytes, batch: Batch) -> Iterator[tuple[int, QuorumValue]]:
    for record in read_records(data, batch):
        value = read_control_record(record).value
        if isinstance(value, QuorumValue):
            yield record.offset, value


def load_bootstrap(log: MetadataLog, level: int) -> list[Message]:
    """Return what a cluster without a log begins with: what its directory was formatted with."""
    names = log.waiting.list("")
    if BOOTSTRAP_FILE not in names:
        return bootstrap_records(level)
    size = log.waiting.size(BOOTSTRAP_FILE)
    return read_snapshot(log.waiting.read(BOOTSTRAP_FILE, 0, size)).records
