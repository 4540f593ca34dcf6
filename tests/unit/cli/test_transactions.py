"""What `moldau transactions` and `kafka-transactions` refuse, and which one they abort."""

from typing import TYPE_CHECKING, cast

import pytest

from moldau.cli import transactions
from moldau.cli.frame import CommandError
from moldau.cli.kafka_tools import transactions as face
from moldau.cli.transactions import abort_at
from moldau.client.descriptions import ActiveProducer
from moldau.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin

PLACE = TopicPartition("t", 0)


class FakeAdmin:
    """A partition with one open transaction, which no coordinator has ended before."""

    def __init__(self) -> None:
        self.aborted: list[dict[str, int]] = []

    def describe_producers(
        self, _: list[TopicPartition]
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        idle = ActiveProducer(1, 0, 5, 0, 3, -1)
        return {PLACE: (idle, ActiveProducer(2, 7, 5, 0, -1, 42))}

    def abort_transaction(self, partition: TopicPartition, **numbers: int) -> None:
        assert partition == PLACE
        self.aborted.append(numbers)


def test_the_transaction_that_began_there_is_aborted() -> None:
    admin = FakeAdmin()
    abort_at(cast("Admin", admin), PLACE, 42)
    assert admin.aborted == [{"producer_id": 2, "producer_epoch": 7, "coordinator_epoch": 0}]
    with pytest.raises(CommandError, match="starting at offset 41 on partition t-0"):
        abort_at(cast("Admin", admin), PLACE, 41)


@pytest.mark.parametrize(
    "words",
    [
        "abort",
        "abort id --partition t:0 --start-offset 1",
        "abort --partition t:0",
        "abort x --start-offset 1",
    ],
)
def test_what_to_abort_has_to_be_clear(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        transactions.main(words.split())
    assert "say what to abort" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("find-hanging", "requires either --topic or --broker-id"),
        ("find-hanging --partition 0 --broker-id 1", "--partition argument requires --topic"),
    ],
)
def test_where_to_search(words: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert face.main(["--bootstrap-server", "localhost:1", *words.split()]) == 1
    assert reason in capsys.readouterr().err
