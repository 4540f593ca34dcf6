"""What Spark's progress tells of records that did not decode."""

from moldau.pipelines.decoding.decode_counts import DecodeCounts, read_decode_counts


def test_counts_of_all_sources_are_added_and_others_are_passed_by() -> None:
    progress = {
        "batchId": 3,
        "observedMetrics": {
            "moldau.undecodable.skipped.0.orders": {"records": 2},
            "moldau.undecodable.skipped.7.a.b": {"records": 3},
            "moldau.undecodable.dead_lettered.8.orders": {"records": 1},
            "mine": {"rows": 100},
        },
    }
    connect = {"values": [4], "schema": {"type": "struct", "fields": [{"name": "records"}]}}
    name = "moldau.undecodable.skipped.0.orders"
    assert read_decode_counts({"observedMetrics": {name: connect}}) == DecodeCounts(skipped=4)
    assert read_decode_counts(progress) == DecodeCounts(skipped=5, dead_lettered=1)


def test_a_batch_in_which_nothing_is_counted() -> None:
    for progress in ({}, {"observedMetrics": {}}, {"observedMetrics": None}):
        assert read_decode_counts(progress) == DecodeCounts()


def test_counts_add_up() -> None:
    assert DecodeCounts(1, 2) + DecodeCounts(10, 20) == DecodeCounts(11, 22)
