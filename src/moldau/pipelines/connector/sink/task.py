"""What a task does: writes its rows, in a transaction that it leaves open, or at once."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from moldau.client.errors import ClientError
from moldau.client.producer import Delivery, Producer
from moldau.pipelines.connector.kept_clients import kept_clients
from moldau.pipelines.connector.sink.broker_configs import (
    check_topic,
    choose_timeout,
    transaction_settings,
)
from moldau.pipelines.connector.sink.columns import split_by_topic
from moldau.pipelines.connector.sink.kafka import SinkKafka
from moldau.pipelines.connector.sink.ledger import OpenTransaction
from moldau.pipelines.connector.sink.messages import TaskWritten
from moldau.pipelines.connector.sink.names import transactional_id
from moldau.pipelines.connector.sink.protocol import BatchOfRun, admit
from moldau.pipelines.connector.sink.settings import SinkSettings
from moldau.pipelines.errors import PipelineError, RetriableError

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt at which task this is."""

    partition: int
    number: int


def write_at_once(settings: SinkSettings, batches: Iterable["RecordBatch"]) -> TaskWritten:
    """Write rows that are visible at once: at least once, for a task may be tried again."""
    with kept_clients(settings.client_config) as clients:
        if settings.topic is not None:
            check_topic(clients.admin, settings.topic)
        with clients.producer(settings.producer_config) as producer:
            _send(producer, settings, batches)
    return TaskWritten()


def write_in_transaction(
    settings: SinkSettings, batch: BatchOfRun, attempt: Attempt, batches: Iterable["RecordBatch"]
) -> TaskWritten:
    """Write rows in an open transaction; nothing if the batch was written already."""
    rows = (each for each in batches if each.num_rows)
    first = next(rows, None)
    if first is None:
        return TaskWritten()
    with SinkKafka(settings) as kafka:
        generation = kafka.run(admit(batch))
        if generation is None:
            for _ in rows:
                pass  # Spark expects that they are read
            return TaskWritten(batch)
        name = transactional_id(batch.key, generation, attempt.partition, attempt.number)
        clients = kafka.clients
        if settings.topic is not None:
            check_topic(clients.admin, settings.topic)
        timeout_ms = settings.transaction_timeout_ms or choose_timeout(clients, batch.kind)
        begun_ms = time.time_ns() // 1_000_000
        with clients.producer(
            {**settings.producer_config, **transaction_settings(timeout_ms)}, transactional_id=name
        ) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            _send(producer, settings, chain([first], rows))
            identity = producer.hand_over_transaction()
    return TaskWritten(batch, OpenTransaction(name, *identity), begun_ms, timeout_ms)


def _send(producer: Producer, settings: SinkSettings, batches: Iterable["RecordBatch"]) -> None:
    """Send rows, and wait until they are stored."""
    errors: list[BaseException] = []

    def told(delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            errors.append(error)

    for batch in batches:
        for topic, rows in split_by_topic(batch, settings.columns, settings.topic):
            try:
                for delivery in producer.send_arrow(topic, rows):
                    delivery.add_done_callback(told)
            except (ClientError, ValueError) as error:
                kind = PipelineError if isinstance(error, ValueError) else RetriableError
                raise kind(f"topic {topic}: {error}") from error
    producer.flush()
    if errors:
        raise RetriableError(f"rows were not stored: {errors[0]}") from errors[0]
