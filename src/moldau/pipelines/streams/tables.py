"""Tables: topics of which the latest record of each key counts."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from moldau.pipelines.decoding.key_columns import KEY_JSON, key_column
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.lookup import Lookup
from moldau.pipelines.streams.packing import pack
from moldau.pipelines.streams.run_options import RunOptions
from moldau.pipelines.streams.sources import (
    ClusterOptions,
    decode_errors,
    key_columns,
    load_records,
)
from moldau.pipelines.views.at_hand import find_at_hand

IS_DELETED: Final = "is_deleted"
KEY: Final = "__key"
PLACE: Final = "__place"
PLACE_TYPE: Final = "struct<partition: int, offset: bigint, timestamp_us: bigint>"
ROW: Final = "__row"
VALUE: Final = "__value"


def column(name: str) -> Column:
    """Return the column of exactly this name, whatever is in it."""
    return F.col(f"`{name.replace('`', '``')}`")


class Table(ABC):
    """Rows by key, of which each has one value at a time."""

    key: StructType
    """The key's columns."""
    value: StructType
    """The value's columns."""

    @abstractmethod
    def snapshot(self) -> DataFrame:
        """Return the latest row of each key, as a batch."""

    @abstractmethod
    def get(self, key: object, *, server: str | None = None) -> dict[str, Any] | None:
        """Return the latest value of a key, None if there is none; `server` has a view of it."""

    @abstractmethod
    def changed_rows(self) -> DataFrame:
        """Return a stream: the key's columns, the value as a struct or null, and its place."""

    def changes(self) -> DataFrame:
        """Return a stream of changes: the key's columns, the value's, and `is_deleted`.

        Where that is true, the value's are null.
        """
        is_deleted = column(VALUE).isNull().alias(IS_DELETED)
        return self.changed_rows().select(*self._keys(), f"{VALUE}.*", is_deleted)

    def records(self, *added: Column) -> DataFrame:
        """Return a stream for a sink: the key's columns and `value`, null for what is deleted.

        Behind them are columns that are `added`, each of those that `changes` has.
        """
        keys = self._keys()
        value = F.to_json(column(VALUE), KEY_JSON).alias("value")
        rows = self.changed_rows()
        if added:
            is_deleted = column(VALUE).isNull().alias(IS_DELETED)
            rows = rows.select(*keys, f"{VALUE}.*", is_deleted, VALUE)
        return rows.select(*keys, value, *added)

    def packed_changes(self, called: Sequence[str] | None = None) -> DataFrame:
        """Return a stream for a join: the key's bytes, where the record is, its row as a text.

        `called` is what the other side calls the columns of the key.
        """
        rows = self.changed_rows()
        key = key_column(rows.schema, self.key.names, called).alias(KEY)
        return rows.select(key, PLACE, pack(column(VALUE)).alias(ROW))

    def _keys(self) -> list[Column]:
        return [column(name) for name in self.key.names]


class ComputedTable(Table):
    """A table that is computed of others, and is in no topic."""

    def get(self, key: object, *, server: str | None = None) -> dict[str, Any] | None:
        """Refuse: no topic has this table."""
        del server
        raise PipelineError(
            f"get({key!r}): this table is in no topic; write it to one by app.to, and get it from "
            "the table of that topic"
        )


class TopicTable(Table):
    """A topic as a table."""

    def __init__(
        self,
        spark: SparkSession,
        cluster: ClusterOptions,
        source: Source,
        metadata: Sequence[str] = (),
    ) -> None:
        """`metadata` are columns of records that are the value's last, with a dash before them."""
        if source.key_schema is None:
            raise PipelineError(
                f'topic {source.topic}: a table needs a key; name its columns: key="id string"'
            )
        self._spark = spark
        self._cluster = cluster
        self._metadata = metadata
        # Half a table is none, wherever the streams beside it begin.
        self._source = replace(source, starting="earliest")
        self.topic = source.topic
        self.format = source.value_format
        self.epoch = source.epoch
        """The column that is a number since 1970 in records, and a timestamp here."""
        rows = self.changed_rows().schema
        value = rows[VALUE].dataType
        assert isinstance(value, StructType)
        self.key = StructType([each for each in rows.fields if each.name not in {VALUE, PLACE}])
        self.value = value
        check_names(f"table {source.topic}", [*self.key.names, IS_DELETED], value.names)

    def changed_rows(self) -> DataFrame:
        """Return a stream of all records that have a key, from the first one on."""
        return self._load(is_batch=False)

    def snapshot(self) -> DataFrame:
        """Return the latest row of each key, as a batch; all of the topic is read for it."""
        rows = self._load(is_batch=True)
        keys = self._keys()
        # As `LatestRecord` has it: by offsets in a partition, by times between them.
        latest = F.max_by(F.struct(VALUE, PLACE), f"{PLACE}.offset").alias(ROW)
        partitions = rows.groupBy(*keys, f"{PLACE}.partition").agg(latest)
        value = F.max_by(f"{ROW}.{VALUE}", f"{ROW}.{PLACE}.timestamp_us").alias(VALUE)
        rows = partitions.groupBy(*keys).agg(value)
        return rows.filter(column(VALUE).isNotNull()).select(*keys, f"{VALUE}.*")

    def get(self, key: object, *, server: str | None = None) -> dict[str, Any] | None:
        """Return the latest value of a key, None if there is none.

        No Spark job runs for it. Where this process keeps a view of the topic that has caught up,
        that answers, else one of a server of this machine: a SQL server, or an app that
        `moldau pipeline run` runs. `server`, such as `http://127.0.0.1:8088`, is asked alone. Else
        the client reads the key's partition, all of it, which is for tests and for a look now and
        then. A key of several columns is a tuple or a dict.
        """
        lookup = Lookup(self._cluster, self._source, self.key, self.value)
        if server is not None:
            return lookup.get_from(server, key)
        view = find_at_hand(self._cluster.bootstrap, self.topic, lookup.key_types)
        if view is not None and (answer := view.get(key)).caught_up:
            return None if answer.row is None else lookup.decode(key, answer.row.value)
        return lookup.get_from_anyone(key)

    def _load(self, *, is_batch: bool) -> DataFrame:
        source = self._source
        errors = decode_errors(source)
        wanted = dict.fromkeys(("key", "value", "partition", "offset", "timestamp"))
        wanted |= dict.fromkeys(self._metadata)
        records = load_records(
            self._spark, self._cluster, source, RunOptions(), errors, [*wanted], is_batch=is_batch
        )
        value = self._value(records.schema["value"].dataType)
        time = F.unix_micros("timestamp").alias("timestamp_us")
        place = F.struct("partition", "offset", time).alias(PLACE)
        # A record without a key is of no row, as in Kafka Streams.
        keyed = records.filter(F.col("key").isNotNull())
        return keyed.select(*key_columns(source), place, value.alias(VALUE))

    def _value(self, kind: DataType) -> Column:
        """Return a record's value as a struct, with columns of the record that are asked for."""
        value = F.col("value")
        names = kind.names if isinstance(kind, StructType) else None
        if names is not None and not self._metadata:
            return value
        fields = [value] if names is None else [value[name].alias(name) for name in names]
        added = [F.col(name).alias(f"_{name}") for name in self._metadata]
        return F.when(value.isNotNull(), F.struct(*fields, *added))


def nowhere() -> Column:
    """Return the place of rows that no record has: a key is there once in a batch, in no order."""
    zero = F.lit(0).cast("bigint")
    return F.struct(
        F.lit(0).alias("partition"), zero.alias("offset"), zero.alias("timestamp_us")
    ).alias(PLACE)


def check_key(schema: StructType, names: Sequence[str], key: StructType, whose: str) -> None:
    """Refuse columns that are not the key of a table that is joined."""
    if len(names) != len(key.names):
        raise OptionError(
            f"on={', '.join(names)}: the table's key has {len(key.names)} columns, "
            f"{', '.join(key.names)}"
        )
    for name, field in zip(names, key.fields, strict=True):
        if name not in schema.names:
            raise OptionError(f"on={name}: the {whose} has {', '.join(schema.names)}")
        found, wanted = schema[name].dataType, field.dataType
        if found != wanted:
            raise OptionError(
                f"on={name}: the {whose}'s is {found.simpleString()}, the table's "
                f"{wanted.simpleString()}; cast the {whose}'s"
            )


def check_names(where: str, taken: Sequence[str], added: Sequence[str]) -> None:
    """Refuse columns whose names are there already; Spark does not tell a from A."""
    known = {name.lower() for name in taken}
    for name in added:
        if name.lower() in known:
            raise PipelineError(
                f"{where}: there are two columns {name}; rename one, or leave it out of the schema"
            )
