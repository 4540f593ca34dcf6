"""Polled records as an Arrow stream, which every Arrow library takes."""

from collections.abc import Sequence

from moldau._native.columns import Columns, export_stream


class ArrowRecords:
    """Records in columns, by Arrow's PyCapsule interface.

    `pyarrow.table(records)`, `polars.DataFrame(records)` and DuckDB's `from records` take them as
    they are, and as often as wanted. Columns: topic (utf8), partition (int32), offset (int64),
    timestamp (timestamp[ms, UTC]), timestamp_type (int8, 1: the broker's time), key and value
    (binary), headers (list of struct of key, utf8, and value, binary).
    """

    def __init__(self, chunks: Sequence[Columns]) -> None:
        if not chunks:
            empty = Columns()
            empty.place("", 0)
            chunks = [empty]
        self._chunks = chunks

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the stream; there is one form only, whatever was requested, as Arrow allows."""
        return export_stream(self._chunks)

    def __arrow_c_schema__(self) -> object:
        """Return the columns' types."""
        return self._chunks[0].__arrow_c_schema__()
