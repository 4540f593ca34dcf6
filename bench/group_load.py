"""`python -m bench.group_load SERVERS WHAT ...`: groups and transactions with librdkafka.

    transactions TOPIC SECONDS                  ten records in three partitions each
    commits TOPIC SECONDS                       offsets, by four consumers, each commit awaited
    rebalance TOPIC SECONDS MEMBERS PROTOCOL    until all partitions are assigned to all members
    groups TOPIC SECONDS COUNT                  make groups with one committed offset each

Prints how many there were, and the seconds that they took; a rebalance, and so many groups, take
as long as they take.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.coordinated import when_coordinated

COMMITTERS = 4
PARTITIONS = 3
DEADLINE_SECONDS = 120


def transactions(servers: str, topic: str, seconds: float) -> tuple[int, float]:
    """Commit one transaction after the other."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions()

    def commit() -> None:
        producer.begin_transaction()
        for record in range(10):
            producer.produce(topic, b"value", partition=record % PARTITIONS)
        producer.commit_transaction()

    commit()
    return _during(seconds, commit)


def commits(servers: str, topic: str, seconds: float) -> tuple[int, float]:
    """Commit offsets with several consumers at once."""
    consumers = [_consumer(servers, f"{topic}-{number}") for number in range(COMMITTERS)]

    def commit(consumer: Consumer) -> None:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)

    for consumer in consumers:
        when_coordinated(partial(commit, consumer))
    with ThreadPoolExecutor(COMMITTERS) as pool:
        done = list(pool.map(lambda each: _during(seconds, partial(commit, each)), consumers))
    return sum(count for count, _ in done), max(spent for _, spent in done)


def rebalance(servers: str, topic: str, _: float, members: str, protocol: str) -> tuple[int, float]:
    """Have members join at once, and wait until the last has its partitions."""
    settings: dict[str, str | int] = {"group.protocol": protocol}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 500
    consumers = [_consumer(servers, topic, settings) for _ in range(int(members))]
    wanted = set(consumers[0].list_topics(topic).topics[topic].partitions)
    for consumer in consumers:
        consumer.subscribe([topic])
    begun = time.perf_counter()
    while True:
        for consumer in consumers:
            consumer.poll(0)
        owned = [{each.partition for each in consumer.assignment()} for consumer in consumers]
        spent = time.perf_counter() - begun
        if all(owned) and sum(map(len, owned)) == len(wanted) and set().union(*owned) == wanted:
            return 1, spent
        if spent > DEADLINE_SECONDS:
            raise SystemExit(f"not all is assigned: {owned}")
        time.sleep(0.002)


def groups(servers: str, topic: str, _: float, count: str) -> tuple[int, float]:
    """Make groups without members."""
    begun = time.perf_counter()
    for number in range(int(count)):
        consumer = _consumer(servers, f"{topic}-{number}")
        offsets = [TopicPartition(topic, 0, number)]
        when_coordinated(partial(consumer.commit, offsets=offsets, asynchronous=False))
        consumer.close()
    return int(count), time.perf_counter() - begun


def _during(seconds: float, work: Callable[[], None]) -> tuple[int, float]:
    """Do it again and again; return how often, and the seconds that it took."""
    begun, count, spent = time.perf_counter(), 0, 0.0
    while spent < seconds:
        work()
        count += 1
        spent = time.perf_counter() - begun
    return count, spent


def _consumer(servers: str, group: str, settings: dict[str, str | int] | None = None) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            **(settings or {}),
        }
    )


DO: dict[str, Callable[..., tuple[int, float]]] = {
    "commits": commits,
    "groups": groups,
    "rebalance": rebalance,
    "transactions": transactions,
}


def main() -> None:
    """Do it, and say how long it took."""
    servers, what, topic, seconds, *more = sys.argv[1:]
    print(*DO[what](servers, topic, float(seconds), *more), flush=True)


if __name__ == "__main__":
    main()
