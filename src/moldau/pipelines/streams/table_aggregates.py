"""Aggregates over tables: a table by group, which follows when rows change, move and go."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.streams.aggregate_types import (
    describe_aggregates,
    read_aggregate,
    read_groups,
)
from moldau.pipelines.streams.group_changes import Contribution, GroupAggregates, changes_between
from moldau.pipelines.streams.latest_record import LatestRecord
from moldau.pipelines.streams.packing import pack, unpack
from moldau.pipelines.streams.plan_text import GROUPS
from moldau.pipelines.streams.table_folds import TableFold, table_fold
from moldau.pipelines.streams.tables import (
    IS_DELETED,
    KEY,
    PLACE,
    ROW,
    VALUE,
    ComputedTable,
    Table,
    column,
    nowhere,
)

GROUP: Final = "__group"
IS_ADDED: Final = "__is_added"
IS_THERE: Final = "__is_there"
CONTRIBUTION: Final = StructType([StructField(GROUP, StringType()), StructField(ROW, StringType())])
CHANGE: Final = StructType([*CONTRIBUTION.fields, StructField(IS_ADDED, BooleanType())])
STATE: Final = StructType([StructField("group", StringType())])
TEXT: Final = StructType([StructField("text", StringType())])
COUNT: Final = StructType([StructField("count", LongType())])


class AggregatedTable(ComputedTable):
    """A row for each group of a table's rows, as they are."""

    def __init__(
        self,
        table: Table,
        by: str | Sequence[str],
        results: Mapping[str, str],
        words: Mapping[str, str] | None = None,
    ) -> None:
        """`words` are what errors call the results, if not as here."""
        rows = table.changes().drop(IS_DELETED)
        self._table = table
        self.key = read_groups(rows, by, results)
        self._found = [
            read_aggregate(rows, name, text, (words or {}).get(name))
            for name, text in results.items()
        ]
        self.value = StructType([StructField(each.name, each.result_type) for each in self._found])

    def snapshot(self) -> DataFrame:
        """Return the aggregates of the table's snapshot."""
        groups = [column(name) for name in self.key.names]
        rows = self._table.snapshot().filter(self._has_group())
        return rows.groupBy(*groups).agg(
            *(F.expr(each.text).alias(each.name) for each in self._found)
        )

    def changed_rows(self) -> DataFrame:
        """Return a stream of the groups that have changed, at most once in a batch each."""
        contributions = self._contributions().groupBy(KEY)
        moved = contributions.transformWithState(RowMover(), CHANGE, "append", "none")
        taken = StructType(
            [StructField(f"a{place}", each.argument_type) for place, each in enumerate(self._found)]
        )
        moved = moved.alias(f"{GROUPS}what each row adds")
        opened = unpack(moved, {ROW: taken}).select(GROUP, IS_ADDED, f"{ROW}.*")
        given = StructType(
            [StructField(GROUP, StringType()), StructField(IS_THERE, BooleanType())]
            + [StructField(f"r{place}", each.given) for place, each in enumerate(self._found)]
        )
        folds = [table_fold(each.fold, each.argument_type.typeName()) for each in self._found]
        kept = opened.groupBy(GROUP).transformWithState(GroupKeeper(folds), given, "append", "none")
        named = kept.alias(f"{GROUPS}{describe_aggregates(self._found, self.key)}")
        results = F.struct(
            *(
                each.from_given(column(f"r{place}")).alias(each.name)
                for place, each in enumerate(self._found)
            )
        )
        return unpack(named, {GROUP: self.key}).select(
            *(column(GROUP)[name].alias(name) for name in self.key.names),
            nowhere(),
            F.when(column(IS_THERE), results).alias(VALUE),
        )

    def _contributions(self) -> DataFrame:
        """Return for each change the key's bytes, its place, its group, and what it adds there."""
        rows = self._table.changed_rows()
        key = key_column(rows.schema, self._table.key.names).alias(KEY)
        names = [column(name) for name in self._table.key.names]
        opened = rows.select(key, PLACE, VALUE, *names, f"{VALUE}.*")
        is_there = column(VALUE).isNotNull() & self._has_group()
        group = F.struct(*(_group(column(each.name), each) for each in self.key.fields))
        # What a row adds is computed only where there is one.
        values = F.struct(
            *(
                F.when(is_there, each.argument).alias(f"a{place}")
                for place, each in enumerate(self._found)
            )
        )
        return opened.select(
            KEY,
            PLACE,
            F.when(is_there, pack(group)).alias(GROUP),
            F.when(is_there, pack(values)).alias(ROW),
        )

    def _has_group(self) -> Column:
        """Return whether a row has a group: as a record without a key, a null alone is of none."""
        if len(self.key.fields) > 1:
            return F.lit(True)  # noqa: FBT003
        return column(self.key.names[0]).isNotNull()


def _group(value: Column, field: StructField) -> Column:
    kind: DataType = field.dataType
    if isinstance(kind, FloatType | DoubleType):
        # Minus zero is zero, as where Spark groups.
        value = F.when(value == 0, F.lit(0).cast(kind)).otherwise(value)
    return value.alias(field.name)


class RowMover(StatefulProcessor):
    """Keeps what each row of the table has added, and tells groups when that is different."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("contribution", CONTRIBUTION)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply one key's records, then yield what groups are told."""
        latest = LatestRecord[Contribution]()
        for row in rows:
            there = None if row[GROUP] is None else Contribution(row[GROUP], row[ROW])
            latest.see(row[PLACE], there)
        found = self._state.get()
        before = Contribution(*found) if found else None
        after = latest.row
        if after is None:
            self._state.clear()
        elif after != before:
            self._state.update(after)
        for (group, values), is_added in changes_between(before, after):
            yield Row(**{GROUP: group, ROW: values, IS_ADDED: is_added})

    def close(self) -> None:
        """Have nothing to close."""


class GroupKeeper(StatefulProcessor):
    """Keeps the aggregates of each group, and the values of those that need them."""

    def __init__(self, folds: Sequence[TableFold]) -> None:
        self._folds = folds
        self._aggregates = GroupAggregates(folds)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state: one text, and a map for each aggregate that needs the values."""
        self._state = handle.getValueState("group", STATE)
        self._counts = [
            StateCounts(handle.getMapState(f"values{place}", TEXT, COUNT))
            if fold.keeps_values
            else None
            for place, fold in enumerate(self._folds)
        ]

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply what the rows have added and taken back, then yield the results if they differ."""
        found = self._state.get()
        # The first columns are the group, and whether it is added.
        changes = ((row[1], row[2:]) for row in rows)
        step = self._aggregates.change(found[0] if found else None, changes, self._counts)
        if step.state is None:
            self._state.clear()
        else:
            self._state.update((step.state,))
        if step.changed is None:
            return
        results = step.changed.results
        values = results or [None] * len(self._folds)
        yield Row(
            **{GROUP: key[0], IS_THERE: results is not None},
            **{f"r{place}": value for place, value in enumerate(values)},
        )

    def close(self) -> None:
        """Have nothing to close."""


class StateCounts:
    """How often each value is in a group, in Spark's state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, text: str) -> int:
        """Return how often it is there."""
        found = self._state.getValue((text,))
        return found[0] if found else 0

    def put(self, text: str, count: int) -> None:
        """Note that; zero is not there any more."""
        if count:
            self._state.updateValue((text,), (count,))
        else:
            self._state.removeKey((text,))

    def texts(self) -> Iterator[str]:
        """Yield the values that are there."""
        for (text,) in self._state.keys():  # noqa: SIM118 - it is no dict
            yield text
