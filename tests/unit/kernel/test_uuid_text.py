import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.uuid_text import uuid_from_text, uuid_to_text


@given(st.binary(min_size=16, max_size=16))
def test_round_trip(uuid: bytes) -> None:
    text = uuid_to_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid
    assert uuid_from_text(text + "==") == uuid


def test_as_kafka_writes_it() -> None:
    # org.apache.kafka.common.Uuid.METADATA_TOPIC_ID is (0, 1).
    assert uuid_to_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text",
    ["", "AAAA", "A" * 21, "A" * 23, "A" * 24, "A" * 21 + "/", "A" * 21 + "é", " " * 22],
)
def test_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is not a uuid"):
        uuid_from_text(text)
