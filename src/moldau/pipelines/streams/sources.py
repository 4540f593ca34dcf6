"""Topics as streams of decoded rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.pipelines.connector.decoding_options import read_decoding
from moldau.pipelines.connector.options import SERVERS, Options
from moldau.pipelines.connector.source_options import read_source_options
from moldau.pipelines.decoding.batches import REASON
from moldau.pipelines.decoding.batches import OnDecodingError as DecodeErrors
from moldau.pipelines.decoding.decode_counts import Counted, count_undecodable, leave_out
from moldau.pipelines.decoding.epochs import UNIT_DEFAULT, UNITS, Epoch
from moldau.pipelines.decoding.formats import FORMATS
from moldau.pipelines.decoding.json_columns import decode_json
from moldau.pipelines.decoding.spark_types import spark_type, words_of
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.run_options import RunOptions

PLACE: Final = ("topic", "partition", "offset")
METADATA: Final = (*PLACE, "timestamp", "headers")
VALUE_FORMATS: Final = ("json", *FORMATS)
# The formats of single keys: those of Java's serializers.
KEY_FORMATS: Final = {
    "string": "string", "int": "int", "bigint": "long", "float": "float", "double": "double",
    "binary": "raw",
}  # fmt: skip
WITH_SCHEMA: Final = ("avro", "protobuf")


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where topics are, and how to speak to it: options of the connector."""

    bootstrap: str
    client: Mapping[str, str]
    """The client's settings, with `kafka.` before each name."""

    @property
    def options(self) -> dict[str, str]:
        """What sources and sinks are told."""
        return {**self.client, SERVERS: self.bootstrap}


def read_key(key: str | None) -> tuple[str, str | None]:
    """Return the format and the schema of keys that are declared as columns: `user string`."""
    if key is None:
        return "raw", None
    fields = parse_schema("key", key).fields
    if len(fields) == 1 and fields[0].dataType.simpleString() in KEY_FORMATS:
        return KEY_FORMATS[fields[0].dataType.simpleString()], key
    return "json", key


def parse_schema(option: str, schema: str) -> StructType:
    """Read names and types as Spark writes them."""
    try:
        found = StructType.fromDDL(schema)
    except PySparkException as error:
        raise OptionError(f"{option}={schema!r} is not a schema: {words_of(error)}") from None
    if not isinstance(found, StructType):
        raise OptionError(f"{option}={schema!r}: names and types are wanted, as in 'user string'")
    return found


def check_format(source: Source) -> None:
    """Refuse a value's format that there is not, and a schema too many or too few."""
    if source.value_format not in VALUE_FORMATS:
        raise OptionError(f"format={source.value_format}: {', '.join(VALUE_FORMATS)} are there")
    needs_schema = source.value_format in ("json", *WITH_SCHEMA)
    if needs_schema and source.value_schema is None:
        raise OptionError(f"topic {source.topic}: format={source.value_format} needs a schema")
    if not needs_schema and source.value_schema is not None:
        raise OptionError(
            f"topic {source.topic}: format={source.value_format} has no schema; leave it out"
        )


def check_metadata(metadata: bool | Sequence[str]) -> tuple[str, ...]:  # noqa: FBT001
    """Return which columns of records are wanted: all, none, or those that are named."""
    if isinstance(metadata, bool):
        return METADATA if metadata else ()
    if unknown := [name for name in metadata if name not in METADATA]:
        raise OptionError(f"metadata={unknown[0]}: {', '.join(METADATA)} are there")
    return tuple(metadata)


def load_rows(
    spark: SparkSession,
    cluster: ClusterOptions,
    source: Source,
    run: RunOptions,
    columns: Sequence[str] = (),
    *,
    is_batch: bool = False,
) -> DataFrame:
    """Return a topic's rows: the key's columns, the value's, and these of the record itself.

    What does not decode is an error, or left out; `load_undecodable` has it then.
    """
    has_key = source.key_schema is not None
    decoded = load_records(
        spark,
        cluster,
        source,
        run,
        decode_errors(source),
        (*(["key"] * has_key), "value", *columns),
        is_batch=is_batch,
    )
    chosen = [*key_columns(source), *_value_columns(decoded)]
    rows = decoded.select(*chosen, *(F.col(name).alias(f"_{name}") for name in columns))
    for name in rows.columns:
        if rows.columns.count(name) > 1:
            raise PipelineError(
                f"topic {source.topic}: there are two columns {name}; leave it out of the key or "
                "of the schema"
            )
    return rows


def decode_errors(source: Source) -> DecodeErrors:
    """Return what becomes of a record that does not decode, for those who read the others."""
    return "fail" if source.on_error == "fail" else "skip"


def load_undecodable(
    spark: SparkSession, cluster: ClusterOptions, source: Source, run: RunOptions
) -> DataFrame:
    """Return the records that do not decode, as they came, each with its `reason`."""
    return load_records(spark, cluster, source, run, "only", ("key", "value", *PLACE, "headers"))


def load_records(
    spark: SparkSession,
    cluster: ClusterOptions,
    source: Source,
    run: RunOptions,
    errors: DecodeErrors,
    columns: Sequence[str],
    *,
    is_batch: bool = False,
) -> DataFrame:
    """Return a topic's records with these columns, key and value decoded: a stream or a batch."""
    json_schemas = _json_schemas(source)
    counted = _counted(source, errors)
    needed = list(columns)
    if json_schemas and errors == "fail":
        needed += [name for name in PLACE if name not in needed]
    is_bounded = run.begin_ms is not None or run.end_ms is not None
    if is_bounded and "timestamp" not in needed:
        needed.append("timestamp")
    options = {
        **cluster.options,
        "subscribe": source.topic,
        "columns": ",".join(needed),
        **_start(source.starting if run.begin_ms is None else str(run.begin_ms)),
        **_decoding(source, _worker_errors(errors, counted, has_json=bool(json_schemas))),
        **source.options,
    }
    # Asked here, what is wrong is one line; asked by Spark, it is a trace of two languages.
    read_source_options(options)
    reader = spark.read if is_batch else spark.readStream
    rows = reader.format("moldau").options(**options).load()
    if is_bounded:
        rows = rows.filter(_is_within(run))
    if json_schemas:
        epoch = source.epoch if "value" in json_schemas else None
        return decode_json(rows, json_schemas, errors, epoch=epoch, counted=counted)
    # Further options of the source may have the worker do something else.
    if counted is None or REASON.name not in rows.columns:
        return rows
    return count_undecodable(rows, counted) if errors == "only" else leave_out(rows, counted)


def _counted(source: Source, errors: DecodeErrors) -> Counted | None:
    """Return what records that do not decode are counted as: nothing where they are an error."""
    if errors == "fail":
        return None
    is_letter = source.on_error == "dead-letter"
    return Counted("dead_lettered" if is_letter else "skipped", source.topic)


def _worker_errors(
    errors: DecodeErrors, counted: Counted | None, *, has_json: bool
) -> DecodeErrors:
    """Return what the source's worker does with records that it cannot decode."""
    if errors == "only":
        return "mark" if has_json else "only"
    # What is to be counted is left out by Spark, behind the worker.
    return errors if counted is None else "note"


def _start(starting: str) -> dict[str, str]:
    if not starting.isdigit():
        return {"startingOffsets": starting}
    # There may be nothing so late yet.
    return {"startingTimestamp": starting, "startingOffsetsByTimestampStrategy": "latest"}


def _is_within(run: RunOptions) -> Column:
    """Return whether a record is of the time that a backfill is for."""
    time_ms = F.unix_millis("timestamp")
    is_within = F.lit(True)  # noqa: FBT003
    if run.begin_ms is not None:
        is_within &= time_ms >= run.begin_ms
    if run.end_ms is not None:
        is_within &= time_ms < run.end_ms
    return is_within


def _json_schemas(source: Source) -> dict[str, str | StructType]:
    schemas: dict[str, str | StructType] = {}
    if source.value_format == "json" and source.value_schema is not None:
        schemas["value"] = source.value_schema
    if source.key_format == "json" and source.key_schema is not None:
        schemas["key"] = _lone_struct(source.key_schema) or source.key_schema
    return schemas


def _lone_struct(key_schema: str) -> StructType | None:
    """Return the only column of a key if it is a struct: the key is its JSON, without a name."""
    fields = parse_schema("key", key_schema).fields
    kind = fields[0].dataType
    return kind if len(fields) == 1 and isinstance(kind, StructType) else None


def _decoding(source: Source, errors: DecodeErrors) -> dict[str, str]:
    """Return the options for what the source's own worker decodes."""
    options: dict[str, str] = {"decodeErrors": errors}
    if source.key_format != "json":
        options["key.format"] = source.key_format
    if source.value_format != "json":
        options["value.format"] = source.value_format
        if source.value_schema is not None:
            options["value.schema"] = source.value_schema
        if source.epoch is not None:
            has_fields = source.value_format in WITH_SCHEMA
            field = f"{source.epoch.column} " if has_fields else ""
            options["value.epoch"] = f"{field}{source.epoch.unit}"
    return options


def key_columns(source: Source) -> list[Column]:
    """Return the columns that a decoded key has."""
    if source.key_schema is None:
        return []
    if source.key_format == "json" and _lone_struct(source.key_schema) is None:
        return [F.col("key.*")]
    (name,) = parse_schema("key", source.key_schema).names
    return [F.col("key").alias(name)]


def _value_columns(decoded: DataFrame) -> list[Column]:
    is_struct = isinstance(decoded.schema["value"].dataType, StructType)
    return [F.col("value.*" if is_struct else "value")]


def find_epoch(source: Source, event_time: str | None, unit: str | None) -> Epoch | None:
    """Return the column of the time, if that is a bigint of the value; None if it is no number."""
    if unit is not None and unit not in UNITS:
        raise OptionError(f"event_time_unit={unit}: {', '.join(UNITS)} are allowed")
    if event_time is None:
        if unit is not None:
            raise OptionError(
                f"event_time_unit={unit}: it is about the column of event_time; give both"
            )
        return None
    kind = _value_types(source).get(event_time)
    if kind == LongType():
        return Epoch(event_time, unit or UNIT_DEFAULT)
    if unit is None:
        return None
    what = "no column of the value" if kind is None else kind.simpleString()
    raise OptionError(
        f"event_time_unit={unit}: event_time={event_time} is {what}, and only a bigint of the "
        "value has a unit; declare it as bigint, or leave event_time_unit out"
    )


def _value_types(source: Source) -> dict[str, DataType]:
    """Return the columns that values have before numbers become times."""
    if source.value_format == "json":
        schema = source.value_schema
        found = StructType() if schema is None else parse_schema("schema", schema)
    else:
        decoder = read_decoding(Options(_decoding(source, "fail") | dict(source.options))).value
        kind = BinaryType() if decoder is None else spark_type(decoder.arrow_type)
        found = kind if isinstance(kind, StructType) else StructType([StructField("value", kind)])
    return {each.name: each.dataType for each in found.fields}


def with_event_time(
    rows: DataFrame, event_time: str | None, watermark: str | None, *, is_epoch: bool = False
) -> DataFrame:
    """Return rows whose time Spark knows, and how late they may be."""
    # That a number is a time is worth saying also of rows that are never late.
    if watermark is None and (event_time is None or is_epoch):
        return rows
    if event_time is None or watermark is None:
        raise OptionError("event_time and watermark belong together: give both, or neither")
    if event_time not in rows.columns:
        raise OptionError(f"event_time={event_time}: the rows have {', '.join(rows.columns)}")
    found = rows.schema[event_time].dataType
    if not isinstance(found, TimestampType | TimestampNTZType):
        raise OptionError(
            f"event_time={event_time} is {found.simpleString()}: declare it as timestamp, or as a "
            f"bigint of the value with event_time_unit ({', '.join(UNITS)})"
        )
    try:
        return rows.withWatermark(event_time, watermark)
    except PySparkException as error:
        raise OptionError(f"watermark={watermark}: {words_of(error)}") from None
