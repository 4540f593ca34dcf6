"""Rows as texts, for state: Python's workers pass each on whole, and look at no column of it.

Spark converts every value by itself on its way to a Python worker and back, which costs more than
this, and times lose their zone on the way into the state. JSON's fields have names, so that a
table's schema may get further fields without the state being made anew.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from moldau.pipelines.decoding.decoder import in_one_line
from moldau.pipelines.decoding.key_columns import KEY_JSON
from moldau.pipelines.errors import PipelineError

_OPTIONS: Final = {**KEY_JSON, "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
# What has been packed here can be read: anything else is a mistake that must not become a null.
_READING: Final = {**_OPTIONS, "mode": "FAILFAST"}
_UNPACKED: Final = "__unpacked"


def pack(struct: Column) -> Column:
    """Return a struct as a text, null if it is null."""
    return F.to_json(struct, _OPTIONS)


def unpack(rows: DataFrame, schemas: Mapping[str, StructType]) -> DataFrame:
    """Return rows whose packed columns are structs of these schemas."""
    structs = [F.from_json(name, schema, _READING).alias(name) for name, schema in schemas.items()]
    others = [name for name in rows.columns if name not in schemas]
    # Spark does not merge what follows with `explode`, and parses once.
    parsed = F.explode(F.array(F.struct(*structs))).alias(_UNPACKED)
    try:
        return rows.select(*others, parsed).select(*others, f"{_UNPACKED}.*")
    except AnalysisException as error:
        raise PipelineError(
            f"state keeps its rows as JSON, and these are none: {in_one_line(error)}; cast what "
            "does not fit"
        ) from None
