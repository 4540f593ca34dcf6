import pytest

from moldau.kernel.disk import DiskFailedError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.runtime.group_commit import (
    Dirty,
    GoOffline,
    GroupCommit,
    StartSync,
    SyncDone,
    Synced,
    SyncFailed,
    Truncated,
    Written,
)

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def dirty(partition: TopicPartition, end: int, *directories: str) -> Dirty:
    return Dirty(partition, Offset(end), [f"{partition}/0.log"], directories)


def test_a_lone_write_is_synced_at_once():
    commit = GroupCommit()
    assert commit.handle(Written([dirty(A, 5, "", "a-0")])) == [
        StartSync(("a-0/0.log",), ("", "a-0"))
    ]
    assert commit.handle(SyncDone()) == [Synced(A, Offset(5))]
    assert commit.handle(Written([dirty(A, 6)])) == [StartSync(("a-0/0.log",), ())]


def test_what_gathers_during_a_sync_shares_the_next():
    commit = GroupCommit()
    commit.handle(Written([dirty(A, 5)]))
    assert commit.handle(Written([dirty(A, 6), dirty(B, 1, "b-0")])) == []
    assert commit.handle(Written([Dirty(A, Offset(7), ["a-0/0.log", "a-0/6.log"], ["a-0"])])) == []
    assert commit.handle(SyncDone()) == [
        StartSync(("a-0/0.log", "b-0/0.log", "a-0/6.log"), ("b-0", "a-0")),
        Synced(A, Offset(5)),
    ]
    assert commit.handle(SyncDone()) == [Synced(A, Offset(7)), Synced(B, Offset(1))]
    assert commit.handle(Written([])) == []


def test_a_sync_vouches_for_nothing_written_after_a_cut():
    commit = GroupCommit()
    commit.handle(Written([dirty(A, 100)]))
    commit.handle(Truncated(A, Offset(50)))
    commit.handle(Truncated(B, Offset(50)))
    commit.handle(Written([dirty(A, 80)]))
    effects = commit.handle(SyncDone())
    assert effects == [StartSync(("a-0/0.log",), ()), Synced(A, Offset(50))]
    commit.handle(Written([dirty(A, 90)]))
    commit.handle(Truncated(A, Offset(85)))
    assert commit.handle(SyncDone())[-1] == Synced(A, Offset(80))
    assert commit.handle(SyncDone()) == [Synced(A, Offset(85))]


def test_a_failed_sync_is_final():
    commit = GroupCommit()
    commit.handle(Written([dirty(A, 5)]))
    commit.handle(Written([dirty(B, 5)]))
    error = DiskFailedError("a-0/0.log", "EIO")
    assert commit.handle(SyncFailed(error)) == [GoOffline(error)]
    assert commit.handle(Written([dirty(A, 6)])) == []
    assert commit.handle(SyncDone()) == []


def test_a_write_has_a_file():
    with pytest.raises(AssertionError):
        GroupCommit().handle(Written([Dirty(A, Offset(1), [])]))
