"""Lost data: the log's start and end tell it."""

import pytest

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.loss import (
    DataLossError,
    DataLossWarning,
    cut,
    find_loss,
    report_loss,
)
from moldau.pipelines.connector.planning import OffsetRange

KEY = TopicPartition("clicks", 3)


@pytest.mark.parametrize(
    ("log_start", "log_end", "words", "left"),
    [
        (0, 50, None, (10, 20)),
        (10, 20, None, (10, 20)),
        (15, 20, "has lost offsets 10 to 14: it begins at offset 15", (15, 20)),
        (30, 40, "has lost offsets 10 to 19: it begins at offset 30", (30, 30)),
        (0, 12, "ends at offset 12, and offsets 10 to 19 were to be read", (10, 12)),
        (0, 5, "ends at offset 5, and offsets 10 to 19 were to be read", (10, 10)),
    ],
)
def test_a_log_has_a_range_or_some_of_it(
    log_start: int, log_end: int, words: str | None, left: tuple[int, int]
) -> None:
    wanted = OffsetRange(KEY, 10, 20)
    found = find_loss(wanted, log_start, log_end)
    assert (words is None) == (found is None)
    assert words is None or f"partition clicks-3 {words}" in str(found)
    assert cut(wanted, log_start, log_end) == OffsetRange(KEY, *left)


def test_loss_is_an_error_that_names_the_option_or_a_warning() -> None:
    with pytest.raises(DataLossError, match="gone; set failOnDataLoss to false"):
        report_loss("gone", fails=True)
    with pytest.warns(DataLossWarning, match="gone"):
        report_loss("gone", fails=False)
