import pytest

from moldau.client.errors import ConfigError, NoOffsetError
from moldau.client.offset_lookup import EARLIEST, LATEST
from moldau.client.offset_reset import OffsetReset


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("by_duration:P1D", 1_000_000_000_000 - 86_400_000),
        ("by_duration:PT1H30M", 1_000_000_000_000 - 5_400_000),
        ("by_duration:P2DT3.5S", 1_000_000_000_000 - 172_803_500),
        ("by_duration:P99999D", 0),
    ],
)
def test_a_policy_says_what_to_look_up(text: str, timestamp: int) -> None:
    assert OffsetReset.parse(text).timestamp_at(1_000_000_000_000, "it") == timestamp


def test_none_is_an_error_that_names_the_partition() -> None:
    with pytest.raises(NoOffsetError, match="partition t-0 has no position"):
        OffsetReset.parse("none").timestamp_at(0, "partition t-0")
    assert OffsetReset.parse("none").is_none


@pytest.mark.parametrize("text", ["", "first", "by_duration:", "by_duration:P", "by_duration:PT"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset=.*earliest, latest, none"):
        OffsetReset.parse(text)
