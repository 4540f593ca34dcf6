"""Spark's types, as far as this engine has the same: their names in DuckDB and in Arrow."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from moldau.pipelines.decoding.epochs import UNITS
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError

DECIMAL_DIGITS_MAX: Final = 38


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type of Spark's, by the name that its DDL has for it."""

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple["SparkType", ...] = ()
    """Of an array its elements', of a map its keys' and values', of a struct its fields'."""
    names: tuple[str, ...] = ()
    """Of a struct's fields."""

    def __str__(self) -> str:
        match self.name:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "struct":
                fields = (f"{name}: {part}" for name, part in self.fields)
                return f"struct<{', '.join(fields)}>"
            case _ if self.parts:
                return f"{self.name}<{', '.join(map(str, self.parts))}>"
            case _:
                return self.name

    @property
    def fields(self) -> tuple[tuple[str, "SparkType"], ...]:
        """A struct's fields."""
        return tuple(zip(self.names, self.parts, strict=True))

    @property
    def is_integral(self) -> bool:
        return self.name in INTEGRAL

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.name in ("float", "double", "decimal")

    @property
    def element(self) -> "SparkType":
        """An array's element, or a map's value."""
        return self.parts[-1]


BOOLEAN: Final = SparkType("boolean")
INT: Final = SparkType("int")
BIGINT: Final = SparkType("bigint")
DOUBLE: Final = SparkType("double")
STRING: Final = SparkType("string")
BINARY: Final = SparkType("binary")
DATE: Final = SparkType("date")
TIMESTAMP: Final = SparkType("timestamp")
NULL: Final = SparkType("void")
INTEGRAL: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""From narrow to wide, with the digits that Spark counts for each as a decimal."""
EPOCHS: Final = {unit: SparkType(f"epoch_{unit}") for unit in UNITS}
"""How a number since 1970 is loaded, of each unit: what comes of it is a timestamp."""
HEADERS: Final = SparkType(
    "array", parts=(SparkType("struct", parts=(STRING, BINARY), names=("key", "value")),)
)

_DUCKDB: Final = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER",
    "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR",
    "binary": "BLOB", "date": "DATE", "timestamp": "TIMESTAMP", "void": "INTEGER",
    **{each.name: "TIMESTAMP" for each in EPOCHS.values()},
}  # fmt: skip
_ARROW: Final = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "void": pa.null(), **{each.name: pa.timestamp("us", "UTC") for each in EPOCHS.values()},
}  # fmt: skip
_PARSED: Final = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int",
    "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "TEXT": "string",
    "VARCHAR": "string", "BINARY": "binary", "DATE": "date", "TIMESTAMPTZ": "timestamp",
    "TIMESTAMP": "timestamp", "TIMESTAMPLTZ": "timestamp",
}  # fmt: skip


@lru_cache(maxsize=1024)
def parse_type(ddl: str) -> SparkType:
    """Read a type as Spark's DDL writes it."""
    if re.search(r"\bcollate\b", ddl, re.IGNORECASE):
        # sqlglot leaves it out.
        raise GoesToSpark(f"type {ddl} is Spark's alone")
    try:
        given = ParsedNode(exp.DataType.build(ddl, dialect="spark"))
    except SqlglotError:
        raise QueryError(f"{ddl!r} is no type of Spark's") from None
    made = from_sqlglot(given)
    given.check()
    return made


def from_sqlglot(given: ParsedNode) -> SparkType:
    """Return a parsed type; `GoesToSpark` for one that this engine does not have."""
    if given.kind is not exp.DataType or given.kind_of("this") is not exp.DType:
        raise GoesToSpark(f"type {given.words.lower()} is Spark's alone")
    name, parts = given.take_word("this"), given.take_list("expressions")
    match name:
        case "DECIMAL":
            digits = [each.get("this").take_whole() or 0 for each in parts]
            precision, scale = [*digits, *(10, 0)[len(digits) :]]
            return SparkType("decimal", precision, scale)
        case "ARRAY" | "LIST":
            return SparkType("array", parts=tuple(map(from_sqlglot, parts)))
        case "MAP":
            return SparkType("map", parts=tuple(map(from_sqlglot, parts)))
        case "STRUCT":
            names = tuple(each.get("this").take_name() for each in parts)
            return SparkType("struct", parts=tuple(map(_field_type, parts)), names=names)
        case _ if name in _PARSED and not parts:
            return SparkType(_PARSED[name])
        case _:
            raise GoesToSpark(f"type {given.words.lower()} is Spark's alone")


def _field_type(field: ParsedNode) -> SparkType:
    for each in field.take_list("constraints"):
        # NOT NULL and a comment are no part of a value.
        kind = each.get("kind")
        if kind.kind is exp.CommentColumnConstraint:
            kind.get("this").take_text()
        elif kind.kind is not exp.NotNullColumnConstraint:
            raise GoesToSpark(f"{each.words} in a type")
    return from_sqlglot(field.get("kind"))


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"


def duckdb_type(given: SparkType) -> str:
    """Return DuckDB's name. Times have no zone there: they are UTC's, as the session is."""
    match given.name:
        case "decimal":
            return f"DECIMAL({given.precision},{given.scale})"
        case "array":
            return f"{duckdb_type(given.element)}[]"
        case "map":
            return f"MAP({', '.join(map(duckdb_type, given.parts))})"
        case "struct":
            fields = (f"{quoted(name)} {duckdb_type(part)}" for name, part in given.fields)
            return f"STRUCT({', '.join(fields)})"
        case name:
            return _DUCKDB[name]


def arrow_type(given: SparkType) -> pa.DataType:
    """Return the Arrow type that Spark has for it, too."""
    match given.name:
        case "decimal":
            return pa.decimal128(given.precision, given.scale)
        case "array":
            return pa.list_(arrow_type(given.element))
        case "map":
            return pa.map_(*map(arrow_type, given.parts))
        case "struct":
            return pa.struct([pa.field(name, arrow_type(part)) for name, part in given.fields])
        case name:
            return _ARROW[name]


def from_arrow(given: pa.DataType) -> SparkType:
    """Return the Spark type of what a decoder gives."""
    for name, arrow in _ARROW.items():
        if arrow == given:
            return SparkType(name)
    if pa.types.is_decimal(given):
        return SparkType("decimal", given.precision, given.scale)
    if pa.types.is_list(given):
        return SparkType("array", parts=(from_arrow(given.value_type),))
    if pa.types.is_map(given):
        return SparkType("map", parts=(from_arrow(given.key_type), from_arrow(given.item_type)))
    if pa.types.is_struct(given):
        fields = [given.field(at) for at in range(given.num_fields)]
        parts = tuple(from_arrow(field.type) for field in fields)
        return SparkType("struct", parts=parts, names=tuple(field.name for field in fields))
    raise GoesToSpark(f"type {given} is Spark's alone")


def common_type(one: SparkType, other: SparkType) -> SparkType | None:
    """Return what both become where they meet, by the rules of Spark's ANSI mode; None: nothing.

    A text meets other types in Spark by a cast at run time, which is left to it.
    """
    if other in (one, NULL):
        return one
    if one == NULL:
        return other
    if {one.name, other.name} == {"date", "timestamp"}:
        return TIMESTAMP
    return _common_number(one, other) if one.is_numeric and other.is_numeric else None


def _common_number(one: SparkType, other: SparkType) -> SparkType:
    if one.is_integral and other.is_integral:
        order = list(INTEGRAL)
        return max(one, other, key=lambda each: order.index(each.name))
    if "double" in (one.name, other.name) or "float" in (one.name, other.name):
        return DOUBLE
    left, right = as_decimal(one), as_decimal(other)
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(digits + scale, scale)


def as_decimal(given: SparkType) -> SparkType:
    """Return the decimal that has all values of an integral type."""
    return given if given.name == "decimal" else SparkType("decimal", INTEGRAL[given.name])


def decimal(precision: int, scale: int) -> SparkType:
    """Return a decimal; beyond 38 digits Spark trades scale for range, which is left to it."""
    if precision > DECIMAL_DIGITS_MAX:
        raise GoesToSpark(f"decimal({precision},{scale}) has more than {DECIMAL_DIGITS_MAX} digits")
    return SparkType("decimal", precision, scale)
