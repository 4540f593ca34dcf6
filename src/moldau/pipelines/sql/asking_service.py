"""A service for questions only: it owns nothing, runs nothing, and no other process finds it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from moldau.pipelines.sql.catalog.definitions import CatalogChange
from moldau.pipelines.sql.catalog.topic import CatalogTopic, load_catalog
from moldau.pipelines.sql.service import Ports, Service


class _NoLog:
    def append(self, changes: Sequence[CatalogChange]) -> None:
        raise AssertionError(f"{len(changes)} changes of who owns nothing")


@contextmanager
def asking_service(
    servers: str, make_ports: Callable[[], Ports], service: str
) -> Iterator[Service]:
    """Yield a service that answers by the catalog as it is now."""
    topic = CatalogTopic(servers, service)
    ports = make_ports()
    try:
        yield Service(load_catalog(topic), _NoLog(), ports, is_owner=False)
    finally:
        ports.close()
        topic.close()
