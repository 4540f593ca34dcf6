import pytest

from moldau._native.records import BatchWriter, read_batches
from moldau.kernel.errors import InvalidRecordError
from moldau.log.markers import Marker, find_marker
from tests.unit.log.batches import CONTROL, marker_bytes


def test_markers() -> None:
    data = marker_bytes(abort=True, coordinator_epoch=7, timestamp=5) + marker_bytes(offset=1)
    first, second = read_batches(data)
    assert find_marker(first, data) == Marker(is_abort=True, coordinator_epoch=7, timestamp=5)
    assert find_marker(second, data) == Marker(is_abort=False, coordinator_epoch=0, timestamp=1000)


def test_other_control_records_are_not_markers() -> None:
    data = marker_bytes(kind=2)  # LEADER_CHANGE
    assert find_marker(read_batches(data)[0], data) is None


@pytest.mark.parametrize(("key", "value"), [(None, None), (b"\0", b""), (b"\0\0\0\1", b"\0\0\0")])
def test_a_short_control_record_is_named(key: bytes | None, value: bytes | None) -> None:
    writer = BatchWriter(base_offset=7)
    writer.append(0, key, value)
    data = writer.finish(attributes=CONTROL, producer_id=1)
    with pytest.raises(InvalidRecordError, match="the control record at 7 is too short"):
        find_marker(read_batches(data)[0], data)
