"""`python -m bench.group_load SERVERS WHAT ...`: groups and transactions with librdkafka.

    transactions TOPIC COUNT            ten records in three partitions each
    commits TOPIC COUNT                 offsets, by four consumers, each commit awaited
    rebalance TOPIC MEMBERS PROTOCOL    until all partitions are assigned to all members
    groups TOPIC COUNT                  make groups with one committed offset each

Prints how many there were, and the seconds that they took.
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


def transactions(servers: str, topic: str, count: int) -> float:
    """Commit one transaction after the other."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions()

    def commit() -> None:
        producer.begin_transaction()
        for record in range(10):
            producer.produce(topic, b"value", partition=record % PARTITIONS)
        producer.commit_transaction()

    commit()
    begun = time.perf_counter()
    for _ in range(count):
        commit()
    return time.perf_counter() - begun


def commits(servers: str, topic: str, count: int) -> float:
    """Commit offsets with several consumers at once."""
    consumers = [_consumer(servers, f"{topic}-{number}") for number in range(COMMITTERS)]

    def commit(consumer: Consumer, times: int) -> None:
        for offset in range(times):
            offsets = [TopicPartition(topic, 0, offset)]
            consumer.commit(offsets=offsets, asynchronous=False)

    for consumer in consumers:
        when_coordinated(partial(commit, consumer, 10))
    with ThreadPoolExecutor(COMMITTERS) as pool:
        begun = time.perf_counter()
        done = [pool.submit(commit, each, count // COMMITTERS) for each in consumers]
        for each in done:
            each.result()
        return time.perf_counter() - begun


def rebalance(servers: str, topic: str, members: int, protocol: str) -> float:
    """Have members join at once, and wait until the last has its partitions."""
    settings: dict[str, str | int] = {"group.protocol": protocol}
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 500
    consumers = [_consumer(servers, topic, settings) for _ in range(members)]
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
            return spent
        if spent > DEADLINE_SECONDS:
            raise SystemExit(f"not all is assigned: {owned}")
        time.sleep(0.002)


def groups(servers: str, topic: str, count: int) -> float:
    """Make groups that nobody is in."""
    begun = time.perf_counter()
    for number in range(count):
        consumer = _consumer(servers, f"{topic}-{number}")
        consumer.commit(offsets=[TopicPartition(topic, 0, number)], asynchronous=False)
        consumer.close()
    return time.perf_counter() - begun


def _consumer(servers: str, group: str, settings: dict[str, str | int] | None = None) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            **(settings or {}),
        }
    )


DO: dict[str, Callable[..., float]] = {
    "commits": commits,
    "groups": groups,
    "rebalance": rebalance,
    "transactions": transactions,
}


def main() -> None:
    """Do it, and say how long it took."""
    servers, what, topic, count, *more = sys.argv[1:]
    seconds = DO[what](servers, topic, int(count), *more)
    print(count, seconds, flush=True)


if __name__ == "__main__":
    main()
