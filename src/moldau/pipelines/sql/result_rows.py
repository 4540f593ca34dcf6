"""Arrow's columns as rows of Python's values."""

from typing import Any

import pyarrow as pa

from moldau.pipelines.sql.ports import ResultRow


def rows_of(batch: pa.RecordBatch) -> list[ResultRow]:
    """Return the rows of a batch; maps are dicts."""
    columns = [
        [_value(each, field.type) for each in values.to_pylist()]
        if _has_map(field.type)
        else values.to_pylist()
        for field, values in zip(batch.schema, batch.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(place).type) for place in range(kind.num_fields))


def _value(found: Any, kind: pa.DataType) -> Any:
    """Return a value whose maps are dicts; Arrow has them as pairs."""
    if found is None:
        return None
    if pa.types.is_map(kind):
        return {key: _value(each, kind.item_type) for key, each in found}
    if pa.types.is_list(kind):
        return [_value(each, kind.value_type) for each in found]
    if pa.types.is_struct(kind):
        return {field.name: _value(found[field.name], field.type) for field in kind}
    return found
