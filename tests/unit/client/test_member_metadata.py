import pytest

from moldau.client.member_metadata import (
    NO_GENERATION,
    Subscription,
    decode_assignment,
    decode_sticky,
    decode_subscription,
    encode_assignment,
    encode_sticky,
    encode_subscription,
)
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition

OWNED = (TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("b", 0))
SUBSCRIPTION = Subscription(("a", "b"), OWNED, 7, "rack", b"data")


def test_what_an_older_version_does_not_have_is_left_out() -> None:
    assert decode_subscription(encode_subscription(SUBSCRIPTION)) == SUBSCRIPTION
    assert decode_subscription(encode_subscription(SUBSCRIPTION, 2)).rack is None
    assert decode_subscription(encode_subscription(SUBSCRIPTION, 1)).generation == NO_GENERATION
    assert decode_subscription(encode_subscription(SUBSCRIPTION, 0)).owned == ()


def test_what_a_newer_version_has_behind_is_ignored() -> None:
    newer = (9).to_bytes(2) + encode_subscription(SUBSCRIPTION)[2:] + b"more"
    assert decode_subscription(newer) == SUBSCRIPTION
    newer = (9).to_bytes(2) + encode_assignment(OWNED)[2:] + b"more"
    assert decode_assignment(newer) == OWNED


def test_nothing_is_an_assignment_and_rubbish_is_none() -> None:
    assert decode_assignment(b"") == ()
    for rubbish in (b"\0", b"\0\1\xff", b"\0\1\0\0\0\1"):
        with pytest.raises(ProtocolError):
            decode_assignment(rubbish)
        with pytest.raises(ProtocolError):
            decode_subscription(rubbish)


def test_a_sticky_memory_is_read_in_both_versions() -> None:
    data = encode_sticky(OWNED, 7)
    assert decode_sticky(data) == (OWNED, 7)
    assert decode_sticky(data[:-4]) == (OWNED, NO_GENERATION)
    assert decode_sticky(b"\x7f\xff") == decode_sticky(None) == ((), NO_GENERATION)
