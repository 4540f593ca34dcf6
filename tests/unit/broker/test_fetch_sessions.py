from itertools import count

import pytest

from moldau.broker.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_SECONDS,
    FetchSessionError,
    FetchSessions,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)


def sessions(slots: int, **options: int) -> FetchSessions:
    numbers = count(1)
    return FetchSessions(slots, lambda size: next(numbers).to_bytes(size, "big"), **options)


def begin(all_sessions: FetchSessions, size: int, now: float) -> int:
    partitions = [FetchPartition(partition=n, fetch_offset=0) for n in range(size)]
    request = FetchRequest(session_epoch=0, topics=[FetchTopic(topic="t", partitions=partitions)])
    selection = all_sessions.select(request, 12, now)
    rows = [(wanted, PartitionData(partition_index=0)) for wanted in selection.wanted]
    return selection.finish(rows, now)[0]


def use(all_sessions: FetchSessions, session: int, epoch: int, now: float) -> None:
    all_sessions.select(FetchRequest(session_id=session, session_epoch=epoch), 12, now)


def test_there_are_no_more_than_slots():
    made = sessions(2)
    assert begin(made, 1, 0.0)
    assert begin(made, 1, 0.0)
    assert begin(made, 9, 1.0) == 0, "none is old enough to go"
    assert begin(sessions(0), 1, 0.0) == 0


def test_the_longest_unused_goes():
    made = sessions(2)
    first, second = begin(made, 5, 0.0), begin(made, 1, 0.0)
    use(made, second, 1, 100.0)
    third = begin(made, 1, EVICTION_SECONDS + 1)
    assert third
    assert set(made.by_id) == {second, third}
    assert first not in made.by_id


def test_a_smaller_one_goes_for_a_larger_one_when_it_has_lived_its_time():
    made = sessions(2)
    small, large = begin(made, 2, 0.0), begin(made, 4, 0.0)
    now = EVICTION_SECONDS + 1
    use(made, small, 1, now)
    use(made, large, 1, now)
    assert begin(made, 1, now) == 0
    third = begin(made, 3, now)
    assert set(made.by_id) == {large, third}


def test_epochs_begin_again_behind_the_largest():
    made = sessions(1)
    session = begin(made, 1, 0.0)
    made.by_id[session].epoch = EPOCH_MAX
    use(made, session, EPOCH_MAX, 0.0)
    assert made.by_id[session].epoch == 1


def test_the_partitions_of_all_sessions_are_bounded():
    made = sessions(9, partitions_max=10)
    first = begin(made, 6, 0.0)
    assert begin(made, 11, 0.0) == 0, "it goes without a session, and nobody leaves for it"
    assert begin(made, 5, 0.0) == 0, "nobody is old enough to leave"
    assert begin(made, 4, 0.0)
    assert made.partition_count == 10
    assert begin(made, 5, EVICTION_SECONDS + 1)
    assert first not in made.by_id
    assert made.partition_count == 9


def test_a_session_that_grows_too_large_ends():
    made = sessions(9, partitions_max=4)
    session = begin(made, 3, 0.0)
    grow = FetchRequest(session_id=session, session_epoch=1)
    grow.topics = [FetchTopic(topic="u", partitions=[FetchPartition(partition=0)])]
    made.select(grow, 12, 0.0)
    assert made.partition_count == 4
    grow.session_epoch = 2
    grow.topics = [FetchTopic(topic="u", partitions=[FetchPartition(partition=1)])]
    with pytest.raises(FetchSessionError) as error:
        made.select(grow, 12, 0.0)
    assert error.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(made), made.partition_count) == (0, 0)


def test_what_is_forgotten_is_not_counted():
    made = sessions(9)
    session = begin(made, 3, 0.0)
    forget = FetchRequest(session_id=session, session_epoch=1)
    forget.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0, 1])]
    made.select(forget, 12, 0.0)
    assert made.partition_count == 1
    made.select(FetchRequest(session_id=session, session_epoch=-1), 12, 0.0)
    assert (len(made), made.partition_count) == (0, 0)
