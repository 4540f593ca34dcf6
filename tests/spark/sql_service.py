"""What tests of SQL on Spark have in common: a catalog by statements, and records to read."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau import Admin, Producer
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, Definition, folded
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, Select, relation_of

DEADLINE_SECONDS = 120


def snapshot_of(declared: str) -> CatalogSnapshot:
    """Return a catalog with what these statements declare."""
    found = [relation_of(each) for each in parse(declared) if isinstance(each, CreateSource)]
    return CatalogSnapshot({folded(each.name): Definition(each, "", 0) for each in found})


def select_of(text: str) -> Select:
    """Parse one SELECT."""
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return statement


def send(servers: str, topic: str, *records: tuple[str | None, Mapping[str, Any] | None]) -> None:
    """Write keys and JSON; None is a tombstone."""
    with Producer(servers) as producer:
        for key, value in records:
            data = None if value is None else json.dumps(value).encode()
            producer.send(topic, data, None if key is None else key.encode()).result()


def create(servers: str, *topics: str, partitions: int = 1) -> None:
    """Create topics."""
    with Admin(servers) as admin:
        for topic in topics:
            admin.create_topic(topic, partitions)


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} does not come true"
        time.sleep(0.1)
