"""Arrow's columns as rows."""

from datetime import UTC, datetime

import pyarrow as pa

from moldau.pipelines.sql.result_rows import rows_of


def test_maps_are_dicts_wherever_they_are() -> None:
    inner = pa.map_(pa.string(), pa.struct([("m", pa.map_(pa.int32(), pa.string()))]))
    batch = pa.record_batch(
        {
            "n": pa.array([1, None]),
            "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "maps": pa.array([[[("a", {"m": [(1, "x")]})], None], None], pa.list_(inner)),
        }
    )
    assert rows_of(batch) == [
        (1, datetime(2026, 1, 1, tzinfo=UTC), [{"a": {"m": {1: "x"}}}, None]),
        (None, None, None),
    ]
