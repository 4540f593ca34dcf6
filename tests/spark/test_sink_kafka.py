"""The sink's protocol at a real broker, without Spark: who stops, what is finished, what not."""

import threading
from collections.abc import Iterator

import pytest

from moldau import Producer
from moldau.pipelines.connector.sink import decision_topic
from moldau.pipelines.connector.sink.errors import (
    FencedRunError,
    LostTransactionError,
    OldCheckpointError,
    RepeatedWriteError,
    SinkError,
    UndecidedBatchError,
)
from moldau.pipelines.connector.sink.kafka import SinkKafka
from moldau.pipelines.connector.sink.ledger import BatchDecision, Ledger, OpenTransaction
from moldau.pipelines.connector.sink.names import transactional_id
from moldau.pipelines.connector.sink.protocol import (
    BatchKind,
    BatchOfRun,
    abort,
    admit,
    claim,
    commit,
)
from moldau.pipelines.connector.sink.settings import SinkSettings, load_sink_settings
from moldau.pipelines.connector.sink.steps import Append, EndAll, OpenLedger, Program, ask
from moldau.testing.broker import Broker
from tests.spark.reading import open_transactions, read_values


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One for each test: they move its time."""
    with Broker() as running:
        running.create_topic("out", partitions=1)
        yield running


@pytest.fixture
def settings(broker: Broker) -> SinkSettings:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out"}
    return load_sink_settings(options, {"value": "string"})


@pytest.fixture
def kafka(settings: SinkSettings) -> Iterator[SinkKafka]:
    with SinkKafka(settings) as made:
        yield made


def batch(number: int, run: str, kind: BatchKind = BatchKind.STREAM) -> BatchOfRun:
    return BatchOfRun("query" if kind is BatchKind.STREAM else "job-1", run, number, kind)


def write(broker: Broker, kafka: SinkKafka, which: BatchOfRun, partition: int) -> OpenTransaction:
    """Do what a task does."""
    generation = kafka.run(admit(which))
    assert generation is not None
    name = transactional_id(which.key, generation, partition, 0)
    with Producer(broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", f"{which.batch}-{partition}".encode())
        return OpenTransaction(name, *producer.hand_over_transaction())


def decide_only(which: BatchOfRun, transactions: list[OpenTransaction]) -> Program[Ledger]:
    """Decide, and crash."""
    ledger = yield from ask(OpenLedger(which.key))
    if which.kind is BatchKind.JOB:
        ledger = ledger.claimed(which.run)
    ledger = ledger.decided(BatchDecision(which.batch, which.run, tuple(transactions)))
    yield from ask(Append(which.key, ledger))
    return ledger


def test_a_run_that_was_superseded_stops_and_its_rows_are_not_seen(
    broker: Broker, kafka: SinkKafka
) -> None:
    old, new = batch(0, "old"), batch(0, "new")
    left = write(broker, kafka, old, 0)
    kafka.run(commit(new, [write(broker, kafka, new, 0)]))
    with pytest.raises(FencedRunError, match="another run of this query"):
        kafka.run(commit(old, [left]))
    with pytest.raises(FencedRunError):
        kafka.run(admit(batch(1, "old")))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1}
    kafka.run(commit(batch(1, "new"), [write(broker, kafka, batch(1, "new"), 0)]))
    with pytest.raises(OldCheckpointError):
        kafka.run(admit(batch(0, "newest")))
    assert kafka.run(admit(batch(2, "new"))) == 2  # it was left alone


def test_tasks_that_claim_at_once_agree(settings: SinkSettings) -> None:
    generations: list[int | None] = []

    def run() -> None:
        with SinkKafka(settings) as own:
            generations.append(own.run(admit(batch(0, "run"))))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert generations == [1, 1, 1, 1]


def test_what_was_decided_is_finished_by_the_next_run(broker: Broker, kafka: SinkKafka) -> None:
    first = batch(0, "first")
    written = [write(broker, kafka, first, partition) for partition in range(2)]
    kafka.run(decide_only(first, written))
    assert kafka.run(admit(batch(0, "second"))) is None
    kafka.run(commit(batch(0, "second"), []))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1, b"0-1": 1}
    assert kafka.run(admit(batch(1, "second"))) == 2


def test_spark_s_abort_leaves_alone_what_was_decided(broker: Broker, kafka: SinkKafka) -> None:
    first = batch(0, "first")
    written = [write(broker, kafka, first, 0)]
    kafka.run(decide_only(first, written))
    kafka.run(abort(first, written))
    assert kafka.run(admit(batch(0, "second"))) is None
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1}


def test_what_was_not_decided_is_aborted(broker: Broker, kafka: SinkKafka) -> None:
    first = batch(0, "first")
    written = [write(broker, kafka, first, 0)]
    write(broker, kafka, first, 1)
    kafka.run(abort(first, written))
    assert open_transactions(broker.bootstrap_servers, "out") == []
    write(broker, kafka, first, 0)
    kafka.run(claim(batch(0, "second")))
    assert open_transactions(broker.bootstrap_servers, "out") == []


def test_a_batch_that_takes_too_long_is_not_decided(broker: Broker, kafka: SinkKafka) -> None:
    first = batch(0, "first")
    written = [write(broker, kafka, first, 0)]
    broker.clock.advance("2 min")
    with pytest.raises(UndecidedBatchError, match="after 60000 ms"):
        kafka.run(commit(first, written, 60_000))
    kafka.run(commit(batch(0, "second"), [write(broker, kafka, batch(0, "second"), 0)]))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1}


def test_a_decision_is_taken_back_when_all_of_it_has_timed_out(
    broker: Broker, kafka: SinkKafka
) -> None:
    first, second = batch(0, "first"), batch(0, "second")
    kafka.run(decide_only(first, [write(broker, kafka, first, n) for n in range(2)]))
    broker.clock.advance("2 min")
    kafka.run(commit(second, [write(broker, kafka, second, n) for n in range(2)]))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1, b"0-1": 1}


def test_a_decision_of_which_a_part_has_timed_out_is_an_error(
    broker: Broker, kafka: SinkKafka
) -> None:
    first = batch(0, "first")
    written = [write(broker, kafka, first, partition) for partition in range(2)]
    kafka.run(decide_only(first, written))
    kafka.run(ask(EndAll(written[:1], is_commit=True)))
    broker.clock.advance("2 min")
    for run in ("second", "third"):
        with pytest.raises(LostTransactionError, match=r"query query, batch 0: .*of 2 only 1 "):
            kafka.run(admit(batch(0, run)))


def test_a_job_that_its_driver_has_left_is_finished_by_another(
    broker: Broker, kafka: SinkKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_topic, "ABANDONED_MS", -1000)
    job = batch(0, "job-1", BatchKind.JOB)
    kafka.run(decide_only(job, [write(broker, kafka, job, 0)]))
    kafka.run(admit(batch(0, "run")))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1}
    assert kafka.run(ask(OpenLedger("job-1"))).decision is None


def test_a_second_write_of_a_batch_is_an_error_even_if_its_tasks_were_behind(
    broker: Broker, kafka: SinkKafka
) -> None:
    each = BatchOfRun("query", "run", 0, BatchKind.FOREACH_BATCH)
    first, second = (write(broker, kafka, each, partition) for partition in range(2))
    kafka.run(commit(each, [first]))
    with pytest.raises(RepeatedWriteError, match="give each write of a batch a name"):
        kafka.run(commit(each, [second]))
    assert read_values(broker.bootstrap_servers, "out") == {b"0-0": 1}


def test_a_topic_that_forgets_is_refused(broker: Broker, kafka: SinkKafka) -> None:
    broker.create_topic("__moldau_sink_decisions", partitions=1)
    with pytest.raises(SinkError, match=r"cleanup\.policy=delete"):
        kafka.run(admit(batch(0, "run")))
