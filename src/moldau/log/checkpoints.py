"""Kafka's checkpoint files: rows of numbers and names as text, and the clean-shutdown marker.

0                   the version
2                   how many rows follow
orders 0 4711       one row per line: topic, partition, offset
orders 1 815
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.errors import MalformedFileError

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

VERSION: Final = 0

# `int` would also take underscores, other scripts' digits and a megabyte of them.
_NUMBER = re.compile("[0-9]{1,19}")


def render_rows(rows: Sequence[str]) -> bytes:
    """Return a whole checkpoint file."""
    return "\n".join([str(VERSION), str(len(rows)), *rows, ""]).encode()


def parse_rows(path: str, data: bytes, columns: int) -> Iterable[tuple[int, list[str]]]:
    """Return the rows, each with its line number and split into `columns` words.

    An empty file has no rows: Kafka makes one when it opens a log directory.
    """
    if not data:
        return []
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise MalformedFileError(path, 0, f"byte {error.start} is not UTF-8") from None
    version = parse_number(path, 1, lines[0])
    if version != VERSION:
        raise MalformedFileError(path, 1, f"version {version} is not known")
    if len(lines) < 2:
        raise MalformedFileError(path, 2, "the count of rows is missing")
    count = parse_number(path, 2, lines[1])
    rows = []
    for number, line in enumerate(lines[2:], 3):
        words = line.split()
        if len(words) != columns:
            raise MalformedFileError(path, number, f"{len(words)} words instead of {columns}")
        rows.append((number, words))
    if len(rows) != count:
        raise MalformedFileError(path, 2, f"{count} rows announced, {len(rows)} found")
    return rows


def parse_number(path: str, line: int, word: str) -> int:
    """Return a number of at most 64 bits that is not negative."""
    if not _NUMBER.fullmatch(word) or (number := int(word)) >= 1 << 63:
        raise MalformedFileError(path, line, f"{word[:40]!r} is not a number")
    return number


def render_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Return an offset checkpoint file, in a stable order."""
    return render_rows(
        [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    )


def parse_offsets(path: str, data: bytes) -> dict[TopicPartition, Offset]:
    """Read an offset checkpoint file."""
    offsets: dict[TopicPartition, Offset] = {}
    for line, (topic, partition, offset) in parse_rows(path, data, 3):
        key = TopicPartition(topic, parse_number(path, line, partition))
        if key in offsets:
            raise MalformedFileError(path, line, f"{key} is there twice")
        offsets[key] = Offset(parse_number(path, line, offset))
    return offsets


def render_clean_shutdown(broker_epoch: int) -> bytes:
    """Return the file whose presence says that nothing is to be recovered."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def find_clean_broker_epoch(data: bytes) -> int | None:
    """Return the broker epoch in a clean-shutdown file; old ones are empty.

    The epoch is a courtesy to the controller, and the file counts whatever is in it: so what
    cannot be read is no error.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if type(epoch) is int else None
