"""A fetch session says what has changed, and all of it when the broker has forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.client.fetch_session import FetchSessionHandler, PartitionFetch, SessionRequest
from moldau.kernel.ids import TopicPartition

ID, OTHER_ID = bytes([1] * 16), bytes([2] * 16)


def _wanted(offset: int, topic_id: bytes = ID) -> PartitionFetch:
    return PartitionFetch(topic_id, offset, 0, -1, 1 << 20)


def _offsets(request: SessionRequest) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, each.partition): each.fetch_offset
        for topic in request.topics
        for each in topic.partitions
    }


def _forgotten(request: SessionRequest) -> set[tuple[bytes, int]]:
    return {(topic.topic_id, index) for topic in request.forgotten for index in topic.partitions}


A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_after_the_first_request_only_changes_are_said() -> None:
    session = FetchSessionHandler()
    first = session.next_request({A: _wanted(0), B: _wanted(0)})
    assert (first.session_id, first.epoch, len(_offsets(first))) == (0, 0, 2)
    session.answered(77)
    second = session.next_request({A: _wanted(5), B: _wanted(0)})
    assert (second.session_id, second.epoch, _offsets(second)) == (77, 1, {("t", 0): 5})
    session.answered(77)
    third = session.next_request({A: _wanted(5)})
    assert (third.epoch, _offsets(third), _forgotten(third)) == (2, {}, {(ID, 1)})


def test_a_broker_without_sessions_is_told_all_each_time() -> None:
    session = FetchSessionHandler()
    for _ in range(3):
        request = session.next_request({A: _wanted(1)})
        assert (request.epoch, _offsets(request)) == (0, {("t", 0): 1})
        session.answered(0)


def test_a_forgotten_session_is_begun_anew() -> None:
    session = FetchSessionHandler()
    session.next_request({A: _wanted(1)})
    session.answered(5)
    session.reset()
    request = session.next_request({A: _wanted(1)})
    assert (request.session_id, request.epoch, len(_offsets(request))) == (0, 0, 1)


def test_a_topic_created_anew_replaces_the_old_one() -> None:
    session = FetchSessionHandler()
    session.next_request({A: _wanted(9)})
    session.answered(5)
    request = session.next_request({A: _wanted(0, OTHER_ID)})
    assert _forgotten(request) == {(ID, 0)}
    assert request.topics[0].topic_id == OTHER_ID


def test_epochs_begin_again_at_one() -> None:
    session = FetchSessionHandler()
    session.next_request({})
    session.answered(5)
    session._epoch = 0x7FFFFFFF
    session.next_request({})
    session.answered(5)
    assert session.next_request({}).epoch == 1


@given(st.lists(st.dictionaries(st.sampled_from([A, B]), st.integers(0, 3)), max_size=12))
def test_the_broker_always_knows_what_is_wanted(history: list[dict[TopicPartition, int]]) -> None:
    session = FetchSessionHandler()
    remembered: dict[tuple[str, int], int] = {}
    for offsets in history:
        request = session.next_request({key: _wanted(offsets[key]) for key in offsets})
        if request.epoch == 0:
            remembered = {}
        for _, index in _forgotten(request):
            remembered.pop(("t", index))
        remembered |= _offsets(request)
        assert remembered == {tuple(key): offset for key, offset in offsets.items()}
        session.answered(9)
