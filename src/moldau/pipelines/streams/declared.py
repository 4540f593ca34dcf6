"""What an app declares: the topics that it reads, and the queries that it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.streams.plan_text import SparkPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Emit = Literal["changes", "final"]
Mode = Literal["append", "update"]
OnError = Literal["fail", "skip", "dead-letter"]

EMITS: Final = ("changes", "final")
ON_ERROR: Final = ("fail", "skip", "dead-letter")


@dataclass(frozen=True, slots=True)
class Source:
    """A topic that an app reads, and how its records decode."""

    topic: str
    value_format: str
    value_schema: str | None
    key_format: str
    key_schema: str | None
    on_error: OnError
    starting: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the connector, such as `maxOffsetsPerTrigger`."""
    epoch: Epoch | None = None
    """The column of the value that counts since 1970, and is a timestamp once it is decoded."""
    event_time: str | None = field(default=None, compare=False)
    """The column that the watermark goes by: what is done with rows, not which they are."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the records of a query are, as a table would have them."""

    key: "StructType"
    value: "StructType"
    """Where the value has the key's columns, too, they are among these."""
    format: str = "json"


@dataclass(frozen=True, slots=True)
class Query:
    """A stream of rows into a topic, with a name that stays the same from start to start."""

    name: str
    rows: "DataFrame"
    """What the sink writes: the columns key and value, and perhaps headers."""
    topic: str
    emit: Emit
    mode: Mode
    """Spark's output mode."""
    plan: SparkPlan
    """What is read, and what is kept in state."""
    sources: tuple[Source, ...]
    """Those of the app that it reads."""
    partitions: int | None = None
    """How many the topic gets if it is to be created; as many as the input has if None."""
    group: str | None = None
    """Who is told how far it has come, if not the group of its name."""
    written: Written | None = None
    """None without a key."""
