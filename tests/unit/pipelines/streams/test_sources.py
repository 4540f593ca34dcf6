"""What is said about the records of a source."""

import pytest

from moldau.pipelines.errors import OptionError
from moldau.pipelines.streams.sources import METADATA, check_metadata


def test_columns_of_records_are_all_none_or_named() -> None:
    assert check_metadata(True) == METADATA
    assert check_metadata(False) == ()
    assert check_metadata(["timestamp"]) == ("timestamp",)
    with pytest.raises(OptionError, match="metadata=time: topic, partition, offset, timestamp"):
        check_metadata(["time"])
