"""Record-kernel speed: columns against aiokafka's reader, validation against copying."""

import ctypes
import statistics
import time
from collections.abc import Callable

import pyarrow as pa
from aiokafka.record.default_records import (  # type: ignore[import-untyped]
    DefaultRecordBatch,
)

from bench.row import Row
from moldau._native.columns import decode_columns
from moldau._native.records import BatchWriter, check_batches, read_batches

ROUNDS = 9
ROUND_SECONDS = 0.05
BATCH_BYTES = 1 << 20


def make_batches(value_bytes: int, count: int) -> list[bytes]:
    """Build batches of 1 MB, each with other values."""
    writer = BatchWriter()
    batches = []
    for number in range(count):
        writer.reset()
        value = number.to_bytes(2) * (value_bytes // 2)
        while writer.size < BATCH_BYTES:
            writer.append(1_700_000_000_000 + writer.record_count // 8, None, value)
        batches.append(writer.finish())
    return batches


def race(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Run both in turn, for about as long each; return the median CPU seconds of a run of each."""
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for run, measured in zip((ours, theirs), seconds, strict=True):
            runs = 0
            started = time.process_time()
            while (elapsed := time.process_time() - started) < ROUND_SECONDS:
                run()
                runs += 1
            measured.append(elapsed / runs)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def columns_row() -> Row:
    """Decode a batch to all its records: in Arrow, in tuples. Neither checks the checksum."""
    (data,) = make_batches(100, 1)

    def ours() -> object:
        return pa.record_batch(decode_columns(data, read_batches(data, check_crc=False)))

    def theirs() -> list[tuple[object, ...]]:
        return [
            (record.offset, record.timestamp, record.key, record.value, record.headers)
            for record in DefaultRecordBatch(data)
        ]

    millions = read_batches(data)[0].record_count / 1e6
    our_speed, their_speed = (millions / seconds for seconds in race(ours, theirs))
    return Row(
        what="records to Arrow, 100 B values, 1 MB batches",
        against="aiokafka's Cython reader to tuples",
        ours=our_speed,
        theirs=their_speed,
        unit="M records/s",
        ratio=our_speed / their_speed,
        goal=15,
    )


def validation_row(working_set: str, batch_count: int) -> Row:
    """Check what a broker checks of a produced batch; copy the same bytes to other memory."""
    batches = make_batches(1000, batch_count)
    copies = [ctypes.create_string_buffer(len(data)) for data in batches]

    def ours() -> None:
        for data in batches:
            check_batches(data)

    def theirs() -> None:
        for copy, data in zip(copies, batches, strict=True):
            ctypes.memmove(copy, data, len(data))

    gigabytes = sum(map(len, batches)) / 1e9
    our_speed, their_speed = (gigabytes / seconds for seconds in race(ours, theirs))
    return Row(
        what=f"validate + CRC, 1 KB records, {working_set}",
        against="memcpy of the same bytes",
        ours=our_speed,
        theirs=their_speed,
        unit="GB/s",
        ratio=our_speed / their_speed,
        goal=1 / 3,
    )


def rows() -> list[Row]:
    """Run every race."""
    return [
        columns_row(),
        validation_row("1 MB in cache", batch_count=1),
        validation_row("100 MB beyond cache", batch_count=100),
    ]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.what} | {row.against} | {row.ours:.2f} : {row.theirs:.2f} {row.unit} | "
            f"{row.ratio:.2f}x, goal {row.goal:.2f}x"
        )
