"""What is told of answers, as lines of JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from moldau.pipelines.sql.plain_values import plain

CHUNK_BYTES: Final = 64 << 10


def lines_of(values: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield lines, several at once where there are many."""
    held: list[bytes] = []
    size = 0
    for value in values:
        held.append(line_of(value))
        size += len(held[-1])
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def line_of(value: Mapping[str, object]) -> bytes:
    """Return a line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
