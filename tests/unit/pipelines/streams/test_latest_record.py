"""Which record of a key is the latest."""

from itertools import permutations

from moldau.pipelines.streams.latest_record import LatestRecord


def place(partition: int, offset: int, timestamp_us: int) -> dict[str, int]:
    return {"partition": partition, "offset": offset, "timestamp_us": timestamp_us}


def test_in_a_partition_the_last_offset_counts_whatever_the_times_say() -> None:
    records = [(place(0, 5, 90), "old"), (place(0, 6, 10), "new"), (place(0, 4, 95), None)]
    for order in permutations(records):
        latest = LatestRecord()
        for where, row in order:
            latest.see(where, row)
        assert latest.row == "new"


def test_between_partitions_the_later_time_counts() -> None:
    records = [(place(0, 900, 10), "before it moved"), (place(3, 0, 20), None)]
    for order in permutations(records):
        latest = LatestRecord()
        for where, row in order:
            latest.see(where, row)
        assert latest.row is None


def test_no_record_is_not_a_tombstone() -> None:
    latest = LatestRecord()
    assert not latest
    latest.see(place(0, 0, 0), None)
    assert latest
    assert latest.row is None
