"""A view's records as rows of a relation."""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.pipelines.decoding.epochs import to_time
from moldau.pipelines.decoding.reasons import epoch_out_of_years
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.local.json_exact import BadRecordError, read_json
from moldau.pipelines.sql.local.wanted import stored_values
from moldau.pipelines.sql.ports import ResultColumn, ResultRow
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.views.answers import KeyedRow

_PLAIN: Final[Mapping[str, Callable[[bytes], object]]] = {
    "string": lambda data: data.decode(errors="replace"),
    "raw": bytes,
    "int": lambda data: struct.unpack(">i", data)[0],
    "long": lambda data: struct.unpack(">q", data)[0],
    "float": lambda data: struct.unpack(">f", data)[0],
    "double": lambda data: struct.unpack(">d", data)[0],
}


class RowReader:
    """Decodes the records of one table."""

    def __init__(self, relation: Relation) -> None:
        """Refuse what only Spark decodes."""
        self._relation = relation
        if relation.format != "json" and relation.format not in _PLAIN:
            raise PipelineError(f"{relation.name} is {relation.format}, which only Spark decodes")
        self._fields = stored_values(relation)
        self.columns = tuple(ResultColumn(each.name, each.type) for each in relation.columns)

    def read(self, row: KeyedRow) -> ResultRow:
        """Return a record's columns, as they were declared."""
        try:
            found = {**row.key, **self._values(row.value)}
        except (BadRecordError, struct.error) as error:
            raise PipelineError(
                f"topic {self._relation.topic}, partition {row.partition}, offset {row.offset} "
                f"does not decode: {error}"
            ) from None
        return tuple(found.get(each.name) for each in self._relation.columns)

    def _values(self, data: bytes) -> dict[str, Any]:
        if self._relation.format == "json":
            return read_json(data, self._fields)
        value = _PLAIN[self._relation.format](data)
        epoch = self._relation.epoch
        if epoch is not None and isinstance(value, int):
            value = to_time(value, epoch.unit)
            if value is None:
                raise BadRecordError(epoch_out_of_years(epoch.column, epoch.unit))
        return dict(zip([name for name, _ in self._fields], [value], strict=False))
