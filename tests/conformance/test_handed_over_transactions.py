"""Transactions that another process ends: what each broker says of how they have ended.

The sink of the Spark connector rests on these answers.
"""

import time
from collections.abc import Iterator

import pytest

from moldau.client.admin import Admin
from moldau.client.admin_transactions import TransactionDescription
from moldau.client.producer import Producer
from moldau.client.transactional import PreparedTransaction
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome, classify
from tests.conformance.apache_kafka import apache_kafka
from tests.conformance.brokers import run_moldau

SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


@pytest.fixture(scope="module", params=["moldau", "apache", "apache-v1"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The broker's name and address."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "moldau":
        with run_moldau(directory, SETTINGS) as broker:
            yield request.param, broker.bootstrap_servers
        return
    level = () if request.param == "apache" else ("--feature", "transaction.version=1")
    with apache_kafka(directory, SETTINGS, *level) as kafka:
        yield request.param, f"127.0.0.1:{kafka.port}"


@pytest.fixture
def admin(served: tuple[str, str]) -> Iterator[Admin]:
    with Admin(served[1]) as made:
        yield made


def hand_over(servers: str, name: str, timeout_ms: int = 60_000) -> PreparedTransaction:
    """Leave a transaction with a record open; the producer is gone."""
    with Producer(servers, transactional_id=name, transaction_timeout_ms=timeout_ms) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"value")
        return producer.hand_over_transaction()


def end(
    admin: Admin, name: str, transaction: PreparedTransaction, *, is_commit: bool
) -> TransactionOutcome:
    answer = admin.end_transactions({name: transaction}, is_commit=is_commit)[name]
    return classify(answer, is_commit=is_commit)


def state_of(admin: Admin, name: str) -> str:
    found = admin.describe_transactions([name])[name]
    assert isinstance(found, TransactionDescription)
    return found.state


def test_what_was_handed_over_stays_open_and_is_committed(
    served: tuple[str, str], admin: Admin
) -> None:
    admin.create_topic("committed", partitions=1)
    transaction = hand_over(served[1], "committed")
    assert state_of(admin, "committed") == "Ongoing"
    for _ in range(2):
        assert end(admin, "committed", transaction, is_commit=True) is TransactionOutcome.COMMITTED
    assert end(admin, "committed", transaction, is_commit=False) is TransactionOutcome.COMMITTED


def test_what_was_handed_over_is_aborted(served: tuple[str, str], admin: Admin) -> None:
    admin.create_topic("aborted", partitions=1)
    transaction = hand_over(served[1], "aborted")
    for _ in range(2):
        assert end(admin, "aborted", transaction, is_commit=False) is TransactionOutcome.ABORTED
    assert end(admin, "aborted", transaction, is_commit=True) is TransactionOutcome.ABORTED


def test_what_has_timed_out_is_never_taken_for_committed(
    served: tuple[str, str], admin: Admin
) -> None:
    admin.create_topic("late", partitions=1)
    transaction = hand_over(served[1], "late", timeout_ms=1_000)
    deadline = time.monotonic() + 60
    while state_of(admin, "late") != "CompleteAbort":
        assert time.monotonic() < deadline
    # Before transaction.version 2 only a timeout raises the epoch, and so does a new producer.
    expected = (
        TransactionOutcome.UNKNOWN if served[0] == "apache-v1" else TransactionOutcome.ABORTED
    )
    assert end(admin, "late", transaction, is_commit=True) is expected
    assert end(admin, "late", transaction, is_commit=False) is expected


def test_whose_id_has_gone_on_is_not_known(served: tuple[str, str], admin: Admin) -> None:
    admin.create_topic("gone-on", partitions=1)
    transaction = hand_over(served[1], "gone-on")
    assert end(admin, "gone-on", transaction, is_commit=True) is TransactionOutcome.COMMITTED
    hand_over(served[1], "gone-on")
    assert end(admin, "gone-on", transaction, is_commit=True) is TransactionOutcome.UNKNOWN
    assert end(admin, "gone-on", transaction, is_commit=False) is TransactionOutcome.UNKNOWN
