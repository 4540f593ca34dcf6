"""A worker on librdkafka: copies a topic in transactions, with the offsets, until it is killed.

python copier.py SERVERS SOURCE TARGET NAME PROTOCOL
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

SECONDS_MAX = 30


def copy(servers: str, source: str, target: str, name: str, protocol: str) -> None:
    """Copy batch after batch; any failure ends the worker, and its successor goes on."""
    config: dict[str, object] = {
        "bootstrap.servers": servers,
        "group.id": source,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "log_level": 2,
    }
    if protocol == "consumer":
        config["group.protocol"] = "consumer"
    else:
        config["partition.assignment.strategy"] = protocol
        config |= {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
    consumer = Consumer(config)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": name,
            "transaction.timeout.ms": 10_000,
            "log_level": 2,
        }
    )
    producer.init_transactions(SECONDS_MAX)
    consumer.subscribe([source])
    while True:
        batch = [message for message in consumer.consume(20, timeout=0.1) if not message.error()]
        if not batch:
            continue
        producer.begin_transaction()
        ends: dict[int, int] = {}
        for message in batch:
            value = f"{message.partition()}:{message.offset()}"
            producer.produce(target, value, partition=message.partition())
            ends[message.partition()] = message.offset() + 1
        offsets = [TopicPartition(source, partition, end) for partition, end in ends.items()]
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(offsets, metadata, SECONDS_MAX)
        producer.commit_transaction(SECONDS_MAX)


if __name__ == "__main__":
    try:
        copy(*sys.argv[1:])
    except KafkaException as error:
        sys.exit(f"{sys.argv[4]}: {error}")
