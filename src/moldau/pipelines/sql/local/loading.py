"""From a topic's records to a table of the engine's: decoded, and of a TABLE the latest rows."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa

from moldau.pipelines.decoding.batches import (
    DecodeError,
    OnDecodingError,
    decode_batch,
    failure,
)
from moldau.pipelines.decoding.decoder import Decoder
from moldau.pipelines.decoding.epoch_decoder import EpochDecoder
from moldau.pipelines.decoding.plain import NUMBERS, RawDecoder, StringDecoder
from moldau.pipelines.sql.local.json_exact import BadRecordError, read_json
from moldau.pipelines.sql.local.json_plain import PlainJson
from moldau.pipelines.sql.local.types import (
    EPOCHS,
    SparkType,
    arrow_type,
    duckdb_type,
    quoted,
)
from moldau.pipelines.sql.local.wanted import METADATA, WantedRelation
from moldau.pipelines.sql.relations import FAIL

_RECORD: Final = {
    "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(),
    "timestamp": pa.timestamp("us"), "key": pa.binary(), "value": pa.binary(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}  # fmt: skip
_PLACE: Final = ("partition", "offset", "timestamp")
_IS_FINE: Final = '"__is_fine"'
_EXACT_ROWS: Final = 50_000
"""How many rows are read one by one before they go to the engine."""

Fields = list[tuple[str, SparkType]]


class Loader:
    """Loads one relation."""

    def __init__(self, wanted: WantedRelation) -> None:
        self._is_table = wanted.is_table
        self._name = quoted(wanted.table)
        self._topic = wanted.relation.topic
        self._guess = wanted.guess
        self._fails = wanted.relation.on_error == FAIL
        self.left_out = 0
        """How many records did not decode, where that is no error."""
        loaded = wanted.loaded
        self._keys = [each for each in wanted.keys if wanted.is_table or each[0] in loaded]
        values = [each for each in wanted.stored_values if each[0] in loaded]
        self._json: dict[str, Fields] = {}
        self._plain: dict[str, str] = {}
        """The column of a key or value that is no JSON."""
        self._decoders: dict[str, Decoder] = {}
        for part, form, fields in (
            ("key", wanted.key_format, self._keys),
            ("value", wanted.relation.format, values),
        ):
            if fields and form == "json":
                self._json[part] = fields
            elif fields:
                self._plain[part] = fields[0][0]
                self._decoders[part] = _decoder(form, fields[0][1])
        declared = {each.name for each in wanted.relation.columns}
        self._metadata = [name for name in METADATA if name in wanted.used - declared]
        self._wanted = [*(name for name, _ in (*self._keys, *values)), *self._metadata]

    @property
    def columns(self) -> list[str]:
        """What is to be read of each record."""
        columns = {"topic", "partition", "offset", *self._json, *self._plain}
        columns |= {name.removeprefix("_") for name in self._metadata}
        if self._is_table:
            columns |= {"key", "value", *_PLACE}
        return sorted(columns)

    def load(self, database: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch]) -> None:
        """Make the relation's table of records; `DecodeError` if one is not what it should be."""
        try:
            self._load(database, batches)
        except DecodeError as error:
            raise DecodeError(f"{error}{self._guess}") from None

    def _load(self, database: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch]) -> None:
        schema = self._schema()
        raw = pa.Table.from_batches([self._shape(each, schema) for each in batches], schema)
        database.register("__raw", raw)
        database.execute(f"CREATE TEMP TABLE {self._name} AS {self._select()}")
        if self._json:
            self._mend(database)
        database.unregister("__raw")
        if self._is_table:
            self._keep_latest(database)

    # Records to columns.

    def _schema(self) -> pa.Schema:
        types = _RECORD | {part: _without_zone(each) for part, each in self._decoders.items()}
        return pa.schema([(name, types[name]) for name in self.columns])

    def _shape(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        decoders = self._decoders
        on_error: OnDecodingError = "fail" if self._fails else "skip"
        decoded = decode_batch(batch, decoders.get("key"), decoders.get("value"), on_error)
        self.left_out += len(batch) - len(decoded)
        if self._is_table:
            # A record without a key is of no row.
            decoded = decoded.filter(decoded.column("key").is_valid())
        arrays = [decoded.column(name).cast(schema.field(name).type) for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _select(self) -> str:
        plans = {
            part: PlainJson(f"{part}_text", f"{part}_found", fields)
            for part, fields in self._json.items()
        }
        texts = "".join(f", TRY(decode({part})) AS {part}_text" for part in plans)
        found = "".join(f", {plan.extracted}" for plan in plans.values())
        columns = [*self._record_columns(), *(each for p in plans.values() for each in p.columns)]
        fine = [f"({part} IS NULL OR {plan.is_fine})" for part, plan in plans.items()]
        columns.append(f"{' AND '.join(fine) or 'true'} AS {_IS_FINE}")
        return (
            f"SELECT {', '.join(columns)} FROM (SELECT *{found} FROM (SELECT *{texts} FROM __raw))"
        )

    def _record_columns(self, of: str = "") -> list[str]:
        """Return what needs no JSON."""
        columns = [f"{of}{part} AS {quoted(name)}" for part, name in self._plain.items()]
        for name in self._metadata:
            own = of + quoted(name.removeprefix("_"))
            if name == "_headers":
                own = f"CASE WHEN len({own}) > 0 THEN {own} END"
            columns.append(f"{own} AS {quoted(name)}")
        columns += [f'{of}"{name}" AS "__{name}"' for name in ("partition", "offset")]
        if self._is_table:
            columns += [
                f'{of}"timestamp" AS "__timestamp"',
                f'{of}"value" IS NULL AS "__is_deleted"',
            ]
        return columns

    # JSON that is not plain.

    def _mend(self, database: duckdb.DuckDBPyConnection) -> None:
        parts = "".join(f", {part}" for part in self._json)
        database.execute(
            f'CREATE TEMP TABLE "__strange" AS SELECT "__partition", "__offset" '
            f"FROM {self._name} WHERE NOT {_IS_FINE}"
        )
        database.execute(f"DELETE FROM {self._name} WHERE NOT {_IS_FINE}")
        rows = database.sql(
            f'SELECT partition, "offset"{parts} FROM __raw JOIN "__strange" '
            'ON partition = "__partition" AND "offset" = "__offset" ORDER BY partition, "offset"'
        ).to_arrow_table()
        for exact in self._read_exactly(rows):
            database.register("__exact", exact)
            fields = [field for each in self._json.values() for field in each]
            read = (
                f"CAST(e.{quoted(name)} AS {duckdb_type(its_type)}) AS {quoted(name)}"
                for name, its_type in fields
            )
            columns = ", ".join([*self._record_columns("r."), *read, f"true AS {_IS_FINE}"])
            database.execute(
                f"INSERT INTO {self._name} BY NAME SELECT {columns} FROM __raw r JOIN __exact e "
                'ON r.partition = e."__partition" AND r."offset" = e."__offset"'
            )
            database.unregister("__exact")
        database.execute('DROP TABLE "__strange"')

    def _read_exactly(self, rows: pa.Table) -> Iterator[pa.Table]:
        fields = [
            pa.field(name, arrow_type(its_type))
            for each in self._json.values()
            for name, its_type in each
        ]
        place = [pa.field("__partition", pa.int32()), pa.field("__offset", pa.int64())]
        schema = pa.schema([*place, *fields])
        for batch in rows.to_batches(max_chunksize=_EXACT_ROWS):
            made = [each for row in batch.to_pylist() if (each := self._read_row(row)) is not None]
            yield pa.Table.from_pylist(made, schema)

    def _read_row(self, row: dict[str, Any]) -> dict[str, Any] | None:
        made = {"__partition": row["partition"], "__offset": row["offset"]}
        for part, fields in self._json.items():
            if row[part] is None:
                continue
            try:
                made |= read_json(row[part], fields)
            except BadRecordError as error:
                if not self._fails:
                    self.left_out += 1
                    return None
                words = f"{part}: {error}"
                raise DecodeError(
                    failure(self._topic, row["partition"], row["offset"], words)
                ) from None
        return made

    # Tables.

    def _keep_latest(self, database: duckdb.DuckDBPyConnection) -> None:
        """Keep the latest record of each key, by offsets in a partition, by times between them."""
        keys = ", ".join(quoted(name) for name, _ in self._keys)
        database.execute(
            f'DELETE FROM {self._name} WHERE "__is_deleted" OR rowid NOT IN ('
            f'SELECT arg_max(row, time) FROM (SELECT {keys}, arg_max(rowid, "__offset") AS row, '
            f'arg_max("__timestamp", "__offset") AS time FROM {self._name} '
            f'GROUP BY {keys}, "__partition") GROUP BY {keys})'
        )


def _decoder(form: str, its_type: SparkType) -> Decoder:
    decoders: dict[str, Decoder] = {"raw": RawDecoder(), "string": StringDecoder(), **NUMBERS}
    units = {each: unit for unit, each in EPOCHS.items()}
    if its_type in units:
        return EpochDecoder(decoders[form], units[its_type])
    return decoders[form]


def _without_zone(decoder: Decoder) -> pa.DataType:
    """Return the type of what a decoder gives; the engine's times are UTC's, without saying so."""
    is_time = pa.types.is_timestamp(decoder.arrow_type)
    return pa.timestamp("us") if is_time else decoder.arrow_type
