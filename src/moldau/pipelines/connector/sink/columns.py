"""The columns of a sink: key, value, topic, partition and headers, as Spark's own connector has."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from moldau.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

TEXT: Final = ("string", "binary")
HEADERS: Final = "array<struct<key:string,value:binary>>"
TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": TEXT,
    "value": TEXT,
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS,),
}
"""What each may be; other columns are overlooked."""
SENT: Final = ("key", "value", "partition", "headers")


def check_columns(types: Mapping[str, str], *, has_topic: bool) -> tuple[str, ...]:
    """Return which columns to send; an error names the first that is missing or wrong.

    A topic that the options name goes before the column.
    """
    if "value" not in types:
        raise PipelineError(
            f"there is no column value among {', '.join(types) or 'none'}: select one, such as "
            "to_json(struct('*')) AS value"
        )
    if not has_topic and "topic" not in types:
        raise PipelineError('no topic: add .option("topic", ...), or a column topic')
    for name, allowed in TYPES.items():
        found = types.get(name)
        if found is None or found in allowed or (name == "topic" and has_topic):
            continue
        raise PipelineError(
            f"column {name} is {found}: {' or '.join(allowed)} is allowed, so cast it"
        )
    return tuple(name for name in SENT if name in types)


def split_by_topic(
    rows: "RecordBatch", columns: tuple[str, ...], topic: str | None
) -> Iterator[tuple[str, "RecordBatch"]]:
    """Yield the rows for each topic, in their order."""
    if not rows.num_rows:
        return
    if topic is not None:
        yield topic, rows.select(list(columns))
        return
    import pyarrow.compute  # noqa: PLC0415 - only where rows name their topics

    names = rows.column("topic")
    for name in names.unique().to_pylist():
        if name is None:
            raise PipelineError("a row has no topic: column topic is null")
        chosen = rows.filter(pyarrow.compute.equal(names, name))
        yield name, chosen.select(list(columns))
