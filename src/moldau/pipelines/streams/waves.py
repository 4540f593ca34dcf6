"""In which order queries run, where some read what others write."""

from collections.abc import Iterable, Iterator, Mapping

from moldau.pipelines.streams.declared import Query


def find_feeders(queries: Iterable[Query]) -> dict[str, frozenset[str]]:
    """Return, by name, who feeds a query: those that write what it reads, and who feeds them.

    A query that goes round in a circle with others, or by itself, is one of its own feeders.
    """
    known = list(queries)
    feeders = {
        query.name: {other.name for other in known if other.topic in query.plan.topics}
        for query in known
    }
    # By way of each query in turn: afterwards, a feeder's feeders are there as well.
    for between, its_own in feeders.items():
        for found in feeders.values():
            if between in found:
                found.update(its_own)
    return {name: frozenset(found) for name, found in feeders.items()}


def find_circle(feeders: Mapping[str, frozenset[str]], name: str) -> frozenset[str]:
    """Return those that feed a query and are fed by it; with itself, or nothing."""
    return frozenset(other for other in feeders[name] if name in feeders[other])


def in_waves(queries: Iterable[Query]) -> Iterator[list[Query]]:
    """Yield queries in groups, each behind those that feed it; a circle comes together."""
    waiting = list(queries)
    feeders = find_feeders(waiting)
    while waiting:
        left = {query.name for query in waiting}
        ready = [
            query
            for query in waiting
            if not (feeders[query.name] & left) - find_circle(feeders, query.name)
        ]
        yield ready
        waiting = [query for query in waiting if query not in ready]
