"""Which task reads which offsets: pure functions, so that a batch that is repeated is the same."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.offsets import Offsets


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """What one task reads: the records from `start` to before `end`."""

    key: TopicPartition
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    partitions_min: int | None = None,
    records_max: int | None = None,
) -> list[OffsetRange]:
    """Return what is to be read, one range for each partition that has something, or several.

    A partition that is new begins at 0: it is lost data if it does not have that any more. So does
    one whose end is before its start: its topic was created anew.
    """
    ranges = []
    for key in sorted(end):
        first = start.get(key, 0)
        if end[key] < first:
            first = 0
        if end[key] > first:
            ranges.append(OffsetRange(key, first, end[key]))
    if records_max is not None:
        ranges = [part for each in ranges for part in _divide(each, ceil(len(each) / records_max))]
    if partitions_min is not None and len(ranges) < partitions_min:
        ranges = list(_divide_large(ranges, partitions_min))
    return ranges


def _divide_large(ranges: list[OffsetRange], count: int) -> Iterator[OffsetRange]:
    """Divide the large ranges so that there are about `count`, as Spark's connector does.

    Those that are too small to be divided have their places; the others share what is left.
    """
    total = sum(map(len, ranges))
    small = {each for each in ranges if _share(each, total, count) == 1}
    total_large = total - sum(map(len, small))
    count_large = max(count - len(small), 1)
    for each in ranges:
        parts = 1 if each in small else _share(each, total_large, count_large)
        yield from _divide(each, parts)


def _share(each: OffsetRange, total: int, count: int) -> int:
    return max(floor(len(each) / total * count + 0.5), 1)


def _divide(each: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    first = each.start
    for part in range(parts):
        last = first + (each.end - first) // (parts - part)
        if last > first:
            yield OffsetRange(each.key, first, last)
        first = last


def limit_rows(
    limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> Offsets:
    """Return ends that are about `limit` offsets from the start, each partition in proportion.

    Every partition that has something gets on by one offset at least.
    """
    sizes = {key: end[key] - start.get(key, 0) for key in end}
    total = sum(size for size in sizes.values() if size > 0)
    limited = {}
    for key, size in sizes.items():
        limited[key] = end[key]
        if size > 0:
            share = limit * (size / total)
            rows = ceil(share) if share < 1 else floor(share)
            limited[key] = min(end[key], start.get(key, 0) + rows)
    return limited


def count_new(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Return how many offsets are between."""
    return sum(max(end[key] - start.get(key, 0), 0) for key in end)


def group_by_partition(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, OffsetRange]:
    """Return what is read of each partition by all tasks together."""
    whole: dict[TopicPartition, OffsetRange] = {}
    for each in ranges:
        known = whole.get(each.key, each)
        whole[each.key] = OffsetRange(
            each.key, min(known.start, each.start), max(known.end, each.end)
        )
    return whole
