"""The small parts of the sink: names, the ledger's bytes, answers of EndTxn, columns, options."""

import pickle

import pyarrow as pa
import pytest

from moldau.client.errors import KafkaError
from moldau.pipelines.connector.sink.columns import HEADERS, check_columns, split_by_topic
from moldau.pipelines.connector.sink.ledger import (
    EMPTY,
    RUNS_KEPT,
    BatchDecision,
    OpenTransaction,
    decode,
    encode,
)
from moldau.pipelines.connector.sink.names import find_generation, ledger_id, transactional_id
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome, classify
from moldau.pipelines.connector.sink.settings import load_sink_settings
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.protocol.errors import ErrorCode

OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "topic": "out"}
TYPES = {"key": "string", "value": "binary"}


def test_names_say_whose_they_are() -> None:
    name = transactional_id("q/a-b", 3, 12, 0)
    assert name == "moldau-q/a-b-3-12-0"
    assert find_generation("q/a-b", name) == 3
    assert find_generation("q/a", name) is None
    assert find_generation("q/a-b", ledger_id("q/a-b")) is None
    assert find_generation("q/a", "moldau-q/a-b-c-d") is None


def test_a_ledger_is_read_as_it_was_written() -> None:
    ledger = EMPTY.claimed("one").claimed("two")
    assert decode(encode(ledger)) == ledger
    decided = ledger.decided(BatchDecision(7, "two", (OpenTransaction("id", 5, 2),)))
    assert decode(encode(decided)) == decided
    assert decode(encode(decided.finished())).decision is not None
    assert ledger.owner == "two"
    assert ledger.generation == 2


def test_a_ledger_remembers_so_many_runs() -> None:
    ledger = EMPTY
    for number in range(RUNS_KEPT + 10):
        ledger = ledger.claimed(str(number))
    assert len(ledger.runs) == RUNS_KEPT
    assert ledger.generation == RUNS_KEPT + 10


def test_a_ledger_of_a_newer_version_is_refused() -> None:
    with pytest.raises(ValueError, match="newer Moldau"):
        decode(b'{"version":2}')


@pytest.mark.parametrize(
    ("code", "is_commit", "outcome"),
    [
        (None, True, TransactionOutcome.COMMITTED),
        (None, False, TransactionOutcome.ABORTED),
        (ErrorCode.INVALID_TXN_STATE, True, TransactionOutcome.ABORTED),
        (ErrorCode.INVALID_TXN_STATE, False, TransactionOutcome.COMMITTED),
        (ErrorCode.PRODUCER_FENCED, True, TransactionOutcome.UNKNOWN),
        (ErrorCode.INVALID_PRODUCER_EPOCH, False, TransactionOutcome.UNKNOWN),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, True, TransactionOutcome.UNKNOWN),
    ],
)
def test_an_answer_says_how_a_transaction_has_ended(
    code: ErrorCode | None, is_commit: bool, outcome: TransactionOutcome
) -> None:
    error = None if code is None else KafkaError(code)
    assert classify(error, is_commit=is_commit) is outcome


def test_an_answer_that_says_nothing_is_raised() -> None:
    with pytest.raises(KafkaError):
        classify(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE), is_commit=True)


def test_columns_are_as_in_the_official_connector() -> None:
    types = TYPES | {"partition": "int", "headers": HEADERS, "offset": "bigint"}
    assert check_columns(types, has_topic=True) == ("key", "value", "partition", "headers")
    assert check_columns({"value": "string", "topic": "int"}, has_topic=True) == ("value",)


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"key": "string"}, "no column value among key"),
        ({"value": "bigint"}, "column value is bigint: string or binary is allowed"),
        ({"value": "string", "partition": "bigint"}, "column partition is bigint: int is allowed"),
        ({"value": "string", "headers": "string"}, "column headers is string"),
    ],
)
def test_a_wrong_column_is_named(types: dict[str, str], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        check_columns(types, has_topic=True)


def test_a_topic_comes_from_an_option_or_a_column() -> None:
    with pytest.raises(PipelineError, match="no topic"):
        check_columns(TYPES, has_topic=False)
    with pytest.raises(PipelineError, match="column topic is int"):
        check_columns(TYPES | {"topic": "int"}, has_topic=False)
    check_columns(TYPES | {"topic": "string"}, has_topic=False)


def test_rows_go_to_the_topics_that_they_name() -> None:
    rows = pa.record_batch({"topic": ["a", "b", "a"], "value": ["1", "2", "3"], "x": [0, 0, 0]})
    found = {name: part.to_pydict() for name, part in split_by_topic(rows, ("value",), None)}
    assert found == {"a": {"value": ["1", "3"]}, "b": {"value": ["2"]}}
    [(name, part)] = split_by_topic(rows, ("value",), "all")
    assert (name, part.num_rows) == ("all", 3)
    nameless = pa.record_batch({"topic": pa.array([None], "string"), "value": ["1"]})
    with pytest.raises(PipelineError, match="column topic is null"):
        list(split_by_topic(nameless, ("value",), None))


def test_settings_travel_to_tasks() -> None:
    texts = OPTIONS | {
        "kafka.linger.ms": "1",
        "checkpointlocation": "x",
        "DELIVERY": "exactly_once",
        "topic": " out ",
    }
    settings = load_sink_settings(texts, TYPES)
    assert settings.is_exactly_once
    assert (settings.topic, settings.sink) == ("out", "out")
    assert settings.client_config == {"bootstrap.servers": "localhost:9092"}
    assert settings.producer_config["linger.ms"] == "1"
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("delivery", "twice", "option delivery=twice: exactly_once or at_least_once is allowed"),
        ("kafka.transactional.id", "me", "option kafka.transactional.id: the connector decides"),
        ("kafka.acks", "1", "option kafka.enable.idempotence=true does not go with acks=1"),
        ("kafka.linger", "1", "option kafka.*there is no setting linger"),
        ("transactiontimeoutms", "1", "option transactionTimeoutMs=1: a number from 1000 on"),
        ("topics", "out", "there is no option topics: did you mean topic"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        load_sink_settings(OPTIONS | {option: value}, TYPES)
