"""What is told of failures: the texts in `captured` are Spark 4.3's own, paths aside."""

from pathlib import Path

import pytest

from moldau.client.errors import ConfigError, UnreachableError
from moldau.pipelines.connector.sink.errors import FencedRunError, UndecidedBatchError
from moldau.pipelines.supervision.failures import LINE_CHARS_MAX, failure_of, read_failure

CAPTURED = Path(__file__).with_name("captured")
OTHER = "the checkpoint is of another query: "
LINES = {
    "option-at-load": (
        True,
        "there is no option startingofsets: did you mean startingOffsets?",
    ),
    "missing-topic": (True, "there is no topic nothere: create it, or check option subscribe"),
    "function-of-the-user": (False, "ValueError: this row is no good (orders.py:29)"),
    "missing-column": (
        True,
        (
            "A column, variable, or function parameter with name `nonono` cannot be resolved. Did "
            "you mean one of the following? [`key`, `topic`, `offset`, `value`, `partition`]."
        ),
    ),
    "sink-without-value": (
        True,
        "there is no column value among valu: select one, such as to_json(struct('*')) AS value",
    ),
    "append-without-watermark": (
        True,
        (
            "Invalid streaming output mode: append. This output mode is not supported for "
            "streaming aggregations without watermark on streaming DataFrames/DataSets."
        ),
    ),
    "other-state": (
        True,
        f"{OTHER}Provided key schema does not match existing state key schema.",
    ),
    "other-operator": (
        True,
        (
            f"{OTHER}Streaming stateful operator name does not match with the operator in state "
            "metadata. This likely to happen when user adds/removes/changes stateful operator of "
            "existing streaming query."
        ),
    ),
    "other-sources": (
        True,
        (
            f"{OTHER}assertion failed: There are [1] sources in the checkpoint offsets and now "
            "there are [2] sources requested by the query. Cannot continue."
        ),
    ),
    "lost-offsets": (
        True,
        (
            "partition in-0 has lost offsets 6 to 8: it begins at offset 9 (retention, or records "
            "were deleted); set failOnDataLoss to false to go on with what is there"
        ),
    ),
    "record-that-does-not-decode": (
        True,
        (
            "topic orders, partition 0, offset 0 does not decode: value: it is not JSON of the "
            "schema; mend the format or schema, or leave such records out: decodeErrors=skip, "
            "on_error in an app"
        ),
    ),
    "unreachable-broker": (
        False,
        "cannot connect to localhost:1 (Connection refused): is a broker running there?",
    ),
    "other-schema": (
        True,
        (
            "topics have the columns struct<key:binary,value:binary,topic:string,partition:int,"
            "offset:bigint,timestamp:timestamp,timestampType:int>, not struct<a:int>: leave "
            ".schema(...) out, and decode the value, as with from_json"
        ),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_line_that_matters(name: str) -> None:
    text = (CAPTURED / f"{name}.txt").read_text()
    failure = read_failure(text)
    assert (failure.is_final, failure.line) == LINES[name]
    assert failure.text == text


def test_every_captured_text_is_read() -> None:
    assert {path.stem for path in CAPTURED.iterdir()} == set(LINES)


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (FencedRunError("another run has taken over"), True),
        (UndecidedBatchError("batch 3 is written again"), False),
        (UnreachableError("nobody is there"), False),
        (ConfigError("there is no setting acsk"), True),
    ],
)
def test_errors_of_this_process(error: Exception, is_final: bool) -> None:
    failure = failure_of(error)
    assert (failure.is_final, failure.line) == (is_final, str(error))


def test_an_error_that_nobody_expected() -> None:
    def dig() -> None:
        raise KeyError("spade")

    with pytest.raises(KeyError) as caught:
        dig()
    failure = failure_of(caught.value)
    assert failure.line.startswith("KeyError: 'spade' (test_failures.py:")
    assert not failure.is_final


@pytest.mark.parametrize(
    "text", ["", "\n", "Traceback (most recent call last):", "moldau.client.nix.E: x"]
)
def test_any_text_gives_a_line(text: str) -> None:
    assert "\n" not in read_failure(text).line


def test_a_line_has_an_end() -> None:
    assert len(read_failure("x" * 10_000).line) < LINE_CHARS_MAX + 10
