"""In which order queries run, where some read what others write."""

from collections.abc import Iterable, Iterator

from moldau.pipelines.streams.declared import Query


def in_waves(queries: Iterable[Query]) -> Iterator[list[Query]]:
    """Yield queries in groups, each behind those that write what it reads.

    Those that go round in a circle come together, and see of each other what is there.
    """
    waiting = list(queries)
    while waiting:
        ready = [query for query in waiting if not _reads_of(query, waiting)] or waiting
        yield ready
        waiting = [query for query in waiting if query not in ready]


def _reads_of(query: Query, others: Iterable[Query]) -> bool:
    read = {source.topic for source in query.sources}
    return any(other.topic in read for other in others if other is not query)
