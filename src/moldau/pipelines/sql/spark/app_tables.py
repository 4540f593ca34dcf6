"""What of an app can be asked by key: the tables that it reads, and what it writes with a key."""

from pyspark.sql.types import StructType

from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.sql.spark.column_ddl import type_of
from moldau.pipelines.streams.app import App


def tables_of(app: App) -> dict[str, Relation]:
    """Return an app's tables by topic, and by the name of the query that writes them.

    A topic that the app reads, too, is what it is read as.
    """
    found = {
        each.topic: _relation(each.topic, each.key, each.value, each.format, each.epoch)
        for each in app.tables
    }
    for query in app.queries:
        written = query.written
        if written is not None:
            relation = _relation(query.topic, written.key, written.value, written.format)
            found.setdefault(query.topic, relation)
    for query in app.queries:
        if query.topic in found:
            found.setdefault(query.name, found[query.topic])
    return found


def _relation(
    topic: str,
    key: StructType,
    value: StructType,
    value_format: str,
    epoch: Epoch | None = None,
) -> Relation:
    keys = (Column(each.name, type_of(each.dataType), is_key=True) for each in key.fields)
    values = (
        Column(each.name, type_of(each.dataType))
        for each in value.fields
        if each.name not in key.names
    )
    return Relation(
        topic,
        RelationKind.TABLE,
        topic,
        (*keys, *values),
        value_format,
        event_time=None if epoch is None else epoch.column,
        event_time_unit=None if epoch is None else epoch.unit,
    )
