"""Spark's types as its DDL writes them, and back."""

from collections.abc import Iterable

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from moldau.pipelines.sql.language.column_types import quote
from moldau.pipelines.sql.relations import Column


def ddl_of(columns: Iterable[Column]) -> str:
    """Return columns as a schema."""
    return ", ".join(f"{quote(each.name)} {each.type}" for each in columns)


def type_of(kind: DataType) -> str:
    """Return a type as a declaration has it, with names in quotes where they need them."""
    match kind:
        case StructType():
            fields = (f"{quote(each.name)}: {type_of(each.dataType)}" for each in kind.fields)
            return f"struct<{', '.join(fields)}>"
        case ArrayType():
            return f"array<{type_of(kind.elementType)}>"
        case MapType():
            return f"map<{type_of(kind.keyType)}, {type_of(kind.valueType)}>"
        case _:
            return kind.simpleString()
