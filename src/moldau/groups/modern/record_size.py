"""Records that are too large are refused before anything is changed for them."""

from collections.abc import Sequence

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.context import GroupContext
from moldau.protocol.errors import ErrorCode


def check_size(context: GroupContext, records: Sequence[StoredRecord]) -> None:
    """Refuse what the log would not take: others in the partition would suffer from trying."""
    if not records:
        return
    size_max = context.record_bytes_max
    if not all(record.fits(size_max) for record in records):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "There are too many topics or partitions.")
