import pytest

from moldau.kernel.ids import TopicPartition
from moldau.log.folders import Folder, FolderState, is_known, marked_name, parse_folder

UNIQUE = bytes(range(16))


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-b.c_d-17", TopicPartition("a-b.c_d", 17)),
        ("x-delete-3", TopicPartition("x-delete", 3)),
        ("-1-2", TopicPartition("-1", 2)),
        ("t-2147483647", TopicPartition("t", 2**31 - 1)),
    ],
)
def test_a_partition_is_told_by_its_name(name: str, partition: TopicPartition) -> None:
    assert parse_folder(name) == Folder(FolderState.IN_USE, partition)


@pytest.mark.parametrize(
    "name",
    ["orders", "orders-", "-0", "orders-01", "orders-x", "t-2147483648", "a b-0", "..-0", "é-0"],
)
def test_strangers_are_no_partitions(name: str) -> None:
    assert parse_folder(name) is None


@pytest.mark.parametrize("topic", ["orders", "a.b-c"])
def test_a_copys_folder_tells_its_partition(topic: str) -> None:
    partition = TopicPartition(topic, 12)
    name = marked_name(partition, UNIQUE, FolderState.FUTURE)
    assert parse_folder(name) == Folder(FolderState.FUTURE, partition)


@pytest.mark.parametrize("state", [FolderState.DELETED, FolderState.STRAY])
@pytest.mark.parametrize("topic", ["orders", "a.b-c", "x" * 249])
def test_marked_folders_are_found_again(topic: str, state: FolderState) -> None:
    name = marked_name(TopicPartition(topic, 12), UNIQUE, state)
    assert len(name) <= 255
    assert parse_folder(name) == Folder(state, None)


def test_what_kafka_and_the_system_keep_there_is_known() -> None:
    for name in (".lock", "meta.properties", "recovery-point-offset-checkpoint.tmp", "lost+found/"):
        assert is_known(name)
    assert not is_known("notes.txt")
