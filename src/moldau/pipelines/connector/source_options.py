"""The options of a source, by the names of Spark's Kafka connector."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.settings import ClientSettings, kafka_name, load
from moldau.pipelines.connector.bounds import AtEdge, Bound, read_end, read_start, refuse_edge
from moldau.pipelines.connector.decoding_options import Decoding, read_decoding
from moldau.pipelines.connector.offsets import EARLIEST, LATEST
from moldau.pipelines.connector.options import IgnoredOptionWarning, Options
from moldau.pipelines.connector.topics import TopicChoice, read_topics
from moldau.pipelines.errors import OptionError

DEFAULTS: Final = {
    "isolation.level": "read_committed",
    # A task reads one partition, and much of it: large answers cost the broker and us least.
    "max.partition.fetch.bytes": str(4 << 20),
}
"""What is different from a consumer's own settings; an option wins over it."""

ABSENT: Final = {
    "kafka.auto.offset.reset": "use startingOffsets, which says where a new query begins",
    "kafka.enable.auto.commit": "offsets are committed to kafka.group.id when a batch is done",
    "kafkaConsumer.pollTimeoutMs": "use kafka.default.api.timeout.ms",
    "fetchOffset.numRetries": "use kafka.default.api.timeout.ms, until which is retried",
    "fetchOffset.retryIntervalMs": "use kafka.retry.backoff.ms",
}
"""Options of Spark's connector that there are not here, and what there is instead."""

COLUMNS: Final = (
    "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
)  # fmt: skip
"""All columns, by the names and in the order of Spark's connector."""

STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
BATCH_ONLY: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
DELAY_DEFAULT: Final = "15m"
_UNITS_MS: Final = {
    "ms": 1, "": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a source was told; batches and streams each have options of their own."""

    topics: TopicChoice
    columns: tuple[str, ...]
    decoding: Decoding
    client_config: dict[str, str]
    start: Bound | None
    end: Bound | None
    partitions_min: int | None
    records_max: int | None
    """Of one task."""
    rows_max: int | None
    """Of one batch of a stream."""
    rows_min: int | None
    delay_max_ms: int
    """How long a batch waits for `rows_min` at most."""
    fails_on_data_loss: bool
    given: frozenset[str]
    """Which options of batches or streams only are there."""

    @property
    def group_id(self) -> str | None:
        """The group that is told how far the stream has come."""
        return self.client_config.get("group.id")

    @property
    def isolation_level(self) -> str:
        """Whether records of transactions are seen before they are committed."""
        return self.client_config["isolation.level"]

    @property
    def api_timeout_ms(self) -> int:
        """How long the client tries something."""
        return load(ConsumerSettings, None, self.client_config, {}).default_api_timeout_ms

    @property
    def consumer_config(self) -> dict[str, str]:
        """The settings of a task's consumer, which goes where it is told, and is in no group."""
        kept = {name: text for name, text in self.client_config.items() if name != "group.id"}
        return kept | {"auto.offset.reset": "none"}

    @property
    def admin_config(self) -> dict[str, str]:
        """The settings of the driver's client: it fetches nothing."""
        known = {kafka_name(name) for name in ClientSettings.__dataclass_fields__}
        return {name: text for name, text in self.client_config.items() if name in known}

    def batch_bounds(self) -> tuple[Bound, Bound]:
        """Return where a batch begins and ends."""
        for name in STREAM_ONLY:
            if name in self.given:
                words = f"option {name} is for streams: it is ignored"
                warnings.warn(words, IgnoredOptionWarning, stacklevel=2)
        start, end = self.start or AtEdge(EARLIEST), self.end or AtEdge(LATEST)
        refuse_edge(
            start, LATEST, "option startingOffsets: a batch cannot begin at latest; use earliest"
        )
        refuse_edge(
            end, EARLIEST, "option endingOffsets: a batch cannot end at earliest; use latest"
        )
        return start, end

    def stream_start(self) -> Bound:
        """Return where a new stream begins."""
        for name in BATCH_ONLY:
            if name in self.given:
                raise OptionError(f"option {name}: a stream does not end; leave it out")
        return self.start or AtEdge(LATEST)


def read_source_options(texts: Mapping[str, str]) -> SourceOptions:
    """Read all options; `OptionError` or the client's `ConfigError` says what is wrong with one."""
    options = Options(texts)
    for name, way_out in ABSENT.items():
        if name in options:
            raise OptionError(f"there is no option {name}: {way_out}")
    if "groupIdPrefix" in options:
        words = "option groupIdPrefix is ignored: no group is joined, and offsets are committed to "
        warnings.warn(words + "kafka.group.id only", IgnoredOptionWarning, stacklevel=2)
    config = DEFAULTS | options.client_config()
    # The client is asked now what it thinks of its settings, not in the first task.
    load(ConsumerSettings, None, config, {})
    rows_max = options.number("maxOffsetsPerTrigger")
    rows_min = options.number("minOffsetsPerTrigger")
    if rows_max is not None and rows_min is not None and rows_min > rows_max:
        raise OptionError(
            f"option minOffsetsPerTrigger={rows_min} is more than maxOffsetsPerTrigger={rows_max}"
        )
    read = SourceOptions(
        topics=read_topics(options),
        columns=_columns(options),
        decoding=read_decoding(options),
        client_config=config,
        start=read_start(options),
        end=read_end(options),
        partitions_min=options.number("minPartitions"),
        records_max=options.number("maxRecordsPerPartition"),
        rows_max=rows_max,
        rows_min=rows_min,
        delay_max_ms=_duration_ms(options, "maxTriggerDelay", DELAY_DEFAULT),
        fails_on_data_loss=options.flag("failOnDataLoss", default=True),
        given=frozenset(name for name in (*STREAM_ONLY, *BATCH_ONLY) if name in options),
    )
    options.check_unknown()
    return read


def _columns(options: Options) -> tuple[str, ...]:
    """Return the columns that are wanted: Spark does not tell a source which ones it needs."""
    text = options.text("columns")
    has_headers = options.flag("includeHeaders", default=False)
    if text is None:
        return tuple(name for name in COLUMNS if has_headers or name != "headers")
    known = {name.lower(): name for name in COLUMNS}
    wanted = [name.strip().lower() for name in text.split(",")]
    for name in wanted:
        if name not in known:
            raise OptionError(
                f"option columns={text}: there is no column {name}; {', '.join(COLUMNS)} exist"
            )
        if wanted.count(name) > 1:
            raise OptionError(f"option columns={text}: {known[name]} is there twice")
    return tuple(known[name] for name in wanted)


def _duration_ms(options: Options, name: str, default: str) -> int:
    """Read a duration as Spark writes it: `30s`, `15m`, or a number of milliseconds."""
    text = (options.text(name, default) or default).strip().lower()
    match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text)
    if match is None or match[2] not in _UNITS_MS:
        raise OptionError(f"option {name}={text}: a duration such as 30s or 15m is allowed")
    return int(match[1]) * _UNITS_MS[match[2]]
