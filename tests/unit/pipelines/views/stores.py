"""Stores to try, and what should be in them, computed plainly."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.store import Store

PLAIN = KeyShape({"id": "string"})


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, without its topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0


def open_store(folder: Path, said: list[str] | None = None, **changed: object) -> Store:
    arguments = {"topic": "users", "shape": PLAIN, **changed}
    return Store(folder, say=[].append if said is None else said.append, **arguments)


def latest_rows(records: Iterable[Kept], shape: KeyShape) -> dict[tuple, bytes]:
    """Return the latest value of each key, the plain way."""
    last: dict[tuple, dict[int, Kept]] = {}
    for each in sorted(records, key=lambda each: each.offset):
        spot = None if each.key is None else shape.find_spot(each.key)
        if spot is not None:
            last.setdefault(tuple(spot), {})[each.partition] = each
    rows = {}
    for spot, by_partition in last.items():
        latest = max(by_partition.values(), key=lambda each: (each.timestamp_ms, each.partition))
        if latest.value is not None:
            rows[spot] = latest.value
    return rows


def stored_rows(store: Store) -> dict[tuple, bytes]:
    return {tuple(each.spot): each.value for each in store.scan(1_000_000).rows}
