"""The offset checkpoints of a log directory: what they should say, and what the device says."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    render_offsets,
)

CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED_OFFSETS)

Rows = dict[TopicPartition, Offset]


class Checkpoint(NamedTuple):
    """A checkpoint file that is to be replaced; the thread that writes it renders it."""

    path: str
    rows: Mapping[TopicPartition, Offset]

    def render(self) -> bytes:
        """Return the file's content."""
        return render_offsets(self.rows)


class OffsetCheckpoints:
    """The rows of each checkpoint, as they should be and as they are on the device.

    One write at a time: what `take` or `lower` returns is on the device, and `synced` was told,
    before either is called again.
    """

    def __init__(self, synced: Mapping[str, Mapping[TopicPartition, Offset]]) -> None:
        self._synced = {path: dict(synced.get(path, {})) for path in CHECKPOINTS}
        self._rows = {path: dict(rows) for path, rows in self._synced.items()}
        self._changed: dict[str, None] = {}

    def find(self, path: str, partition: TopicPartition) -> Offset | None:
        """Return a partition's row."""
        return self._rows[path].get(partition)

    def find_synced(self, path: str, partition: TopicPartition) -> Offset:
        """Return what the device says of a partition, 0 if nothing."""
        return self._synced[path].get(partition, Offset(0))

    def is_synced(self, partition: TopicPartition) -> bool:
        """Whether the device says anything of a partition."""
        return any(partition in rows for rows in self._synced.values())

    def set(self, path: str, partition: TopicPartition, offset: Offset | None) -> None:
        """Change a partition's row, or remove it."""
        rows = self._rows[path]
        if offset is None:
            if rows.pop(partition, None) is not None:
                self._changed[path] = None
        elif rows.get(partition) != offset:
            rows[partition] = offset
            self._changed[path] = None

    def drop(self, partition: TopicPartition) -> None:
        """Remove a partition from all of them."""
        for path in CHECKPOINTS:
            self.set(path, partition, None)

    def lower(self, partition: TopicPartition, to: Offset) -> list[Checkpoint]:
        """Return what must be on the device before the partition is cut at `to`, or begun anew.

        A row beyond the log's end would mean, after a crash, that synced records are missing.
        """
        paths = [path for path in CHECKPOINTS if self.find_synced(path, partition) > to]
        for path in CHECKPOINTS:
            offset = self._rows[path].get(partition)
            if offset is not None and offset > to:
                self.set(path, partition, to)
        return self._take(paths)

    def take(self, paths: Iterable[str]) -> list[Checkpoint]:
        """Return those of `paths` that have changed."""
        return self._take([path for path in paths if path in self._changed])

    def synced(self, checkpoints: Iterable[Checkpoint]) -> None:
        """These are on the device."""
        for path, rows in checkpoints:
            self._synced[path] = dict(rows)

    def put_back(self, checkpoints: Iterable[Checkpoint]) -> None:
        """There was no room for these: they are still to be written."""
        self._changed.update(dict.fromkeys(checkpoint.path for checkpoint in checkpoints))

    def _take(self, paths: Iterable[str]) -> list[Checkpoint]:
        taken = [Checkpoint(path, dict(self._rows[path])) for path in paths]
        for path, _ in taken:
            self._changed.pop(path, None)
        return taken
