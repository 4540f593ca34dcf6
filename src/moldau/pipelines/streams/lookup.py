"""One key's value, by the client alone: no Spark job runs for it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.cluster_offsets import ClusterOffsets
from moldau.pipelines.connector.planning import OffsetRange
from moldau.pipelines.connector.reading import read_range
from moldau.pipelines.connector.source_options import read_source_options
from moldau.pipelines.decoding.decoder import in_one_line
from moldau.pipelines.decoding.epoch_decoder import EpochDecoder
from moldau.pipelines.decoding.formats import make_decoder
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.json_rows import read_json
from moldau.pipelines.streams.key_bytes import encode_key, partition_of
from moldau.pipelines.streams.sources import ClusterOptions
from moldau.pipelines.views.announcing import find_addresses
from moldau.pipelines.views.asking import find_served, key_text


class Lookup:
    """Looks for keys of one topic, each in the partition that it belongs to."""

    def __init__(
        self, cluster: ClusterOptions, source: Source, key: StructType, value: StructType
    ) -> None:
        self._source = source
        self.key_types = {each.name: each.dataType.simpleString() for each in key.fields}
        self._value = value
        self._options = read_source_options(
            {**cluster.options, "subscribe": source.topic, "columns": "key,value"}
        )

    def get(self, key: object) -> dict[str, Any] | None:
        """Return the latest value that decodes, None if that is a tombstone or there is none."""
        wanted = encode_key(self.key_types, key)
        for data in reversed(list(self._find(wanted))):
            if data is None:
                return None
            try:
                return self._decode(data)
            except ValueError as error:
                if self._source.on_error == "fail":
                    raise self._refusal(key, error) from error
        return None

    def get_from(self, server: str, key: object) -> dict[str, Any] | None:
        """Return what a server's view has; the topic is read if that has not caught up."""
        topic = self._source.topic
        text = key_text(self.key_types, key)
        served = find_served([server], topic, self.key_types)
        if served is None or text is None:
            names = ", ".join(self.key_types)
            raise PipelineError(f"{server} has no view of topic {topic} by {names}")
        data, has_caught_up = served.find_value(text)
        if not has_caught_up:
            return self.get(key)
        return None if data is None else self.decode(key, data)

    def get_from_anyone(self, key: object) -> dict[str, Any] | None:
        """Return what a server of this machine has, or what is in the topic."""
        for address in find_addresses(self._options.admin_config):
            with suppress(PipelineError):
                return self.get_from(address, key)
        return self.get(key)

    def decode(self, key: object, data: bytes) -> dict[str, Any] | None:
        """Return a key's value; `PipelineError` if it does not decode."""
        try:
            return self._decode(data)
        except ValueError as error:
            if self._source.on_error == "fail":
                raise self._refusal(key, error) from error
            # What was before it still counts, and only the topic has that.
            return self.get(key)

    def _refusal(self, key: object, error: ValueError) -> PipelineError:
        words = in_one_line(error)
        return PipelineError(f"topic {self._source.topic}, key {key!r} does not decode: {words}")

    def _find(self, wanted: bytes) -> Iterator[bytes | None]:
        """Yield all values of a key, from the log's beginning on."""
        with ClusterOffsets(self._options) as cluster:
            count = len(cluster.require_partitions())
            place = TopicPartition(self._source.topic, partition_of(wanted, count))
            start, end = cluster.earliest([place])[place], cluster.latest([place])[place]
        for batch in read_range(OffsetRange(place, start, max(start, end)), self._options):
            found = batch.filter(pc.equal(batch.column("key"), pa.scalar(wanted, pa.binary())))
            yield from found.column("value").to_pylist()

    def _decode(self, data: bytes) -> dict[str, Any]:
        source = self._source
        if source.value_format == "json":
            return read_json(data, self._value, source.epoch)
        decoder = make_decoder(source.value_format, source.value_schema)
        if source.epoch is not None:
            has_fields = pa.types.is_struct(decoder.arrow_type)
            field = source.epoch.column if has_fields else None
            decoder = EpochDecoder(decoder, source.epoch.unit, field)
        decoded = decoder.decode(pa.array([data]))
        for reason in decoded.reasons.values():
            raise ValueError(reason)
        value = decoded.values[0].as_py()
        return value if isinstance(value, dict) else {"value": value}
