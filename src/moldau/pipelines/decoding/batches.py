"""A source's batch with its keys and values decoded, or with what does not decode."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import pyarrow as pa

from moldau.pipelines.decoding.decoder import Decoder
from moldau.pipelines.errors import PipelineError

OnDecodingError = Literal["fail", "skip", "only", "mark", "note"]
ON_ERROR: Final = ("fail", "skip", "only", "mark", "note")
AS_THEY_CAME: Final = ("only", "mark")
"""With these, records stay as they came."""
WITH_REASONS: Final = (*AS_THEY_CAME, "note")
REASON: Final = pa.field("reason", pa.string())


IS_DECODE_ERROR: Final = re.compile(r"topic .+, partition \d+, offset \d+ does not decode: ")
"""How `failure` begins."""


class DecodeError(PipelineError):
    """A record that does not decode, and where it is."""


def decode_batch(
    batch: pa.RecordBatch, key: Decoder | None, value: Decoder | None, on_error: OnDecodingError
) -> pa.RecordBatch:
    """Return the batch with decoded columns; without a decoder a column stays as it is.

    The batch also has each record's topic, partition and offset, to say where an error is.
    A record that does not decode is an error, or it is left out. With `only` it is what remains:
    those records as they came, each with its `reason`, for whoever keeps dead letters. With `mark`
    all records stay as they came, with a null reason where they decode: there is more to try.
    With `note` all are decoded, and are null with a reason where they do not.
    """
    decoded = batch
    reasons: dict[int, str] = {}
    for name, decoder in (("value", value), ("key", key)):
        if decoder is not None:
            values, bad = decoder.decode(batch.column(name))
            field = pa.field(name, decoder.arrow_type)
            decoded = decoded.set_column(batch.schema.get_field_index(name), field, values)
            reasons |= {place: f"{name}: {why}" for place, why in bad.items()}
    if on_error in WITH_REASONS:
        places = sorted(reasons) if on_error == "only" else range(len(batch))
        return _with_reasons(decoded if on_error == "note" else batch, places, reasons)
    if reasons and on_error == "fail":
        raise _error(batch, *min(reasons.items()), how_many=len(reasons))
    if not reasons:
        return decoded
    return decoded.take(pa.array(sorted(set(range(len(batch))) - reasons.keys()), pa.int64()))


def _with_reasons(
    batch: pa.RecordBatch, places: Sequence[int], reasons: Mapping[int, str]
) -> pa.RecordBatch:
    if not reasons and len(places) == len(batch):
        return batch.append_column(REASON, pa.nulls(len(batch), REASON.type))
    texts = pa.array([reasons.get(place) for place in places], REASON.type)
    return batch.take(pa.array(places, pa.int64())).append_column(REASON, texts)


def _error(batch: pa.RecordBatch, place: int, reason: str, *, how_many: int) -> DecodeError:
    topic, partition, offset = (
        batch.column(name)[place].as_py() for name in ("topic", "partition", "offset")
    )
    others = f" (as {how_many - 1} more of its batch)" if how_many > 1 else ""
    return DecodeError(failure(topic, partition, offset, reason + others))


def failure(topic: str, partition: int | str, offset: int | str, reason: str) -> str:
    """Return what a user reads about a record that does not decode."""
    return (
        f"topic {topic}, partition {partition}, offset {offset} does not decode: {reason}; "
        "mend the format or schema, or leave such records out: on_error=skip in an app or in "
        "CREATE ... WITH, decodeErrors=skip in the connector"
    )
