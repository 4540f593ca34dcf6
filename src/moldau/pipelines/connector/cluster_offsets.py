"""What the driver asks the brokers: which partitions there are, and which offsets they have."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Self

from moldau.client.admin_groups import GroupAdmin
from moldau.client.admin_partitions import PartitionAdmin
from moldau.client.admin_topics import TopicAdmin
from moldau.client.errors import ClientError, KafkaError
from moldau.client.sync import Synchronous, waiting
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.bounds import AtEdge, AtOffsets, AtTimes, Bound
from moldau.pipelines.connector.offsets import EARLIEST, LATEST, Offsets
from moldau.pipelines.connector.opening import open_client
from moldau.pipelines.connector.source_options import SourceOptions
from moldau.pipelines.connector.topics import Assigned, Matched, Subscribed
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.protocol.errors import ErrorCode


class CommitWarning(UserWarning):
    """A group does not know how far a stream has come: nothing is lost by that."""


class AsyncOffsetsAdmin(TopicAdmin, PartitionAdmin, GroupAdmin):
    """The parts of an admin client that a source needs."""


class OffsetsAdmin(Synchronous[AsyncOffsetsAdmin]):
    """The same for threads: each start of a query waits until its process has loaded this."""

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(AsyncOffsetsAdmin(config=config))

    list_topics = waiting(AsyncOffsetsAdmin.list_topics)
    describe_topics = waiting(AsyncOffsetsAdmin.describe_topics)
    list_offsets = waiting(AsyncOffsetsAdmin.list_offsets)
    alter_group_offsets = waiting(AsyncOffsetsAdmin.alter_group_offsets)


class ClusterOffsets:
    """A connection to the cluster, for as long as somebody asks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._admin = open_client(OffsetsAdmin, config=options.admin_config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._admin.close()

    # Partitions.

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions to read that there are now."""
        match self._options.topics:
            case Assigned(partitions):
                return self._existing(partitions)
            case Subscribed(names):
                return self._all_of(names)
            case Matched() as matched:
                topics = self._admin.list_topics().values()
                return self._all_of(
                    matched.choose(each.name for each in topics if not each.is_internal)
                )

    def _all_of(self, names: Iterable[str]) -> list[TopicPartition]:
        return [
            TopicPartition(name, index)
            for name, count in self._partition_counts(names).items()
            for index in range(count)
        ]

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        counts = self._partition_counts(sorted({key.topic for key in partitions}))
        return [key for key in partitions if key.partition < counts.get(key.topic, 0)]

    def _partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return how many partitions these topics have; those that are not there are left out."""
        counts = {}
        for name, found in self._admin.describe_topics(names).items():
            if not isinstance(found, KafkaError):
                counts[name] = len(found.partitions)
            elif found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise found
        return counts

    def require_partitions(self) -> list[TopicPartition]:
        """Return the partitions to read; those that were named must be there."""
        found = self.partitions()
        match self._options.topics:
            case Subscribed(names):
                missing = sorted(set(names) - {key.topic for key in found})
                what = ("topic", "option subscribe")
            case Assigned(partitions):
                missing = [str(key) for key in sorted(set(partitions) - set(found))]
                what = ("partition", "option assign")
            case Matched():
                return found
        if missing:
            kind, option = what
            raise PipelineError(
                f"there is no {kind} {', '.join(missing)}: create it, or check {option}"
            )
        return found

    # Offsets.

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where the logs begin."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the ends of what can be read: up to the first open transaction, if need be."""
        return self._list(dict.fromkeys(partitions, LATEST))

    def log_ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the ends of the logs, open transactions included."""
        return self._list(dict.fromkeys(partitions, LATEST), is_committed=False)

    def resolve(self, bound: Bound, partitions: list[TopicPartition]) -> Offsets:
        """Return the offsets of a bound in these partitions."""
        match bound:
            case AtEdge(offset):
                return self._list(dict.fromkeys(partitions, offset))
            case AtOffsets(option, offsets):
                _check_complete(option, offsets, partitions)
                return self._resolve_edges(offsets)
            case AtTimes(option, int() as timestamp_ms):
                return self._resolve_times(bound, dict.fromkeys(partitions, timestamp_ms))
            case AtTimes(option, timestamps_ms):
                assert not isinstance(timestamps_ms, int), "matched above"
                _check_complete(option, timestamps_ms, partitions)
                return self._resolve_times(bound, timestamps_ms)

    def _resolve_times(self, bound: AtTimes, timestamps_ms: Offsets) -> Offsets:
        found = self._list(timestamps_ms)
        for key, offset in found.items():
            if offset < 0 and not bound.is_latest_allowed:
                raise OptionError(
                    f"option {bound.option}: partition {key} has no record at or behind "
                    f"{timestamps_ms[key]}; startingOffsetsByTimestampStrategy=latest takes its end"
                )
        return self._resolve_edges(
            {key: offset if offset >= 0 else LATEST for key, offset in found.items()}
        )

    def _resolve_edges(self, offsets: Offsets) -> Offsets:
        edges = {key: offset for key, offset in offsets.items() if offset < 0}
        return offsets | self._list(edges)

    def _list(
        self, timestamps: Mapping[TopicPartition, int], *, is_committed: bool | None = None
    ) -> Offsets:
        if not timestamps:
            return {}
        if is_committed is None:
            is_committed = self._options.isolation_level == "read_committed"
        found = self._admin.list_offsets(
            timestamps, isolation_level="read_committed" if is_committed else "read_uncommitted"
        )
        offsets = {}
        for key, listed in found.items():
            if isinstance(listed, KafkaError):
                raise listed
            offsets[key] = listed.offset
        return offsets

    # The group.

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Tell a group how far everything up to these offsets has come; warn if that fails."""
        try:
            answers = self._admin.alter_group_offsets(group_id, offsets)
        except ClientError as error:
            failed: ClientError | None = error
        else:
            failed = next(filter(None, answers.values()), None)
        if failed is not None:
            words = f"group {group_id} was not told how far the stream has come: {failed}"
            warnings.warn(words, CommitWarning, stacklevel=2)


def _check_complete(option: str, given: Offsets, partitions: list[TopicPartition]) -> None:
    missing, strange = set(partitions) - set(given), set(given) - set(partitions)
    if missing:
        raise OptionError(
            f"option {option}: partition {min(missing)} is missing; name all of them, in offsets "
            f"with -2 for earliest and -1 for latest"
        )
    if strange:
        raise OptionError(f"option {option}: partition {min(strange)} is not among those read")
