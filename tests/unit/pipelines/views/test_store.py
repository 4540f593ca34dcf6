"""The store of a view: whose it is, what becomes of damage, and what is read from it."""

import sqlite3
from pathlib import Path

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.views.key_shape import KeyShape
from moldau.pipelines.views.store import Store
from tests.unit.pipelines.views.stores import PLAIN, Kept, open_store, stored_rows

WINDOWED = KeyShape({"user": "string", "window": "struct<start:timestamp,end:timestamp>"})


def fill(store: Store, count: int = 3) -> None:
    store.adopt(b"topic-1")
    records = [Kept(0, n, b"k%d" % n, b"v%d" % n) for n in range(count)]
    store.apply(records, {0: count}, now_ms=0)


def test_rows_and_positions_survive(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store)
    store.close()
    again = open_store(tmp_path)
    assert again.positions == {0: 3}
    assert stored_rows(again) == {(b"k0", 0, 0): b"v0", (b"k1", 0, 0): b"v1", (b"k2", 0, 0): b"v2"}
    assert again.find(b"k1").rows[0].offset == 1
    assert again.find(b"k9") == ([], {0: 3})
    again.close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topic": "orders"}, 'is of topic users with the key {"id": "string"}: built anew'),
        ({"shape": KeyShape({"id": "binary"})}, "is of topic users with the key"),
    ],
)
def test_a_store_of_another_table_is_built_anew(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    store = open_store(tmp_path)
    fill(store)
    store.close()
    words: list[str] = []
    other = open_store(tmp_path, words, **changed)
    assert (other.positions, stored_rows(other)) == ({}, {})
    assert len(words) == 1
    assert said in words[0]
    other.close()


def test_a_store_of_another_version_is_built_anew(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store)
    store.close()
    with sqlite3.connect(tmp_path / "view.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    words: list[str] = []
    again = open_store(tmp_path, words)
    assert again.positions == {}
    assert "is of version 99 and not 1: built anew" in words[0]
    again.close()


def test_a_topic_created_anew_begins_with_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.adopt(b"topic-1")
    fill(store)
    assert store.adopt(b"topic-1")
    assert store.positions == {0: 3}
    assert not store.adopt(b"topic-2")
    assert (store.positions, stored_rows(store)) == ({}, {})
    store.close()


def test_a_file_that_is_none_is_set_aside_and_told_of(tmp_path: Path) -> None:
    (tmp_path / "view.sqlite").write_bytes(b"not a database at all, " * 1000)
    words: list[str] = []
    store = open_store(tmp_path, words)
    assert (store.positions, stored_rows(store)) == ({}, {})
    assert "is damaged (file is not a database)" in words[0]
    assert (tmp_path / "view.sqlite.damaged").read_bytes().startswith(b"not a database")
    fill(store)
    store.close()


def test_damage_that_a_reader_meets_is_told_and_mended(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, count=5000)
    store.close()
    file = tmp_path / "view.sqlite"
    data = bytearray(file.read_bytes())
    # The first pages have the tables' names and who the store belongs to.
    for page in range(8, len(data) // 8192):
        data[page * 8192 : page * 8192 + 100] = b"\xff" * 100
    file.write_bytes(data)
    words: list[str] = []
    store = open_store(tmp_path, words)
    with pytest.raises(PipelineError, match="its file is damaged, and will be built anew"):
        store.scan(5000)
    assert store.damage is not None
    store.rebuild()
    assert store.damage is None
    assert "is damaged" in words[-1]
    fill(store, count=5)
    assert len(stored_rows(store)) == 5
    store.close()


def test_a_folder_has_one_view_at_a_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(PipelineError, match="another one is in"):
        open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()


def window_key(user: str, minute: int, length: int = 1) -> bytes:
    start, end = (f"2026-01-01T12:{at:02}:00.000000Z" for at in (minute, minute + length))
    return f'{{"user":"{user}","window":{{"start":"{start}","end":"{end}"}}}}'.encode()


def test_windows_of_a_key_are_one_range_of_the_index(tmp_path: Path) -> None:
    store = open_store(tmp_path, shape=WINDOWED)
    keys = [window_key(user, minute) for user in ("ann", "annette", "bob") for minute in (5, 1, 9)]
    keys.append(window_key("ann", 5, length=2))
    records = [Kept(0, n, key, b"%d" % n) for n, key in enumerate(keys)]
    store.apply(records, {0: len(records)}, now_ms=0)
    ann = WINDOWED.encode_rest("ann")
    assert [each.value for each in store.find(ann).rows] == [b"1", b"0", b"9", b"2"]
    five = WINDOWED.find_spot(window_key("ann", 5)).start_us
    assert [each.value for each in store.find(ann, start_us=five).rows] == [b"0", b"9", b"2"]
    assert [each.value for each in store.find(ann, until_us=five).rows] == [b"1"]
    plan = store._reader.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM rows WHERE key = ? AND start_us >= ? AND start_us < ?"
        " ORDER BY key, start_us, end_us",
        (ann, 0, 1),
    ).fetchall()
    assert [row[3] for row in plan] == [
        "SEARCH rows USING INDEX by_key (key=? AND start_us>? AND start_us<?)"
    ]
    store.close()


def test_keys_that_are_not_of_the_columns_are_counted(tmp_path: Path) -> None:
    store = open_store(tmp_path, shape=WINDOWED)
    records = [
        Kept(0, 0, b"ann", b"1"),
        Kept(0, 1, None, b"2"),
        Kept(0, 2, window_key("a", 1), b"3"),
    ]
    assert store.apply(records, {0: 3}, now_ms=0) == 1
    assert len(stored_rows(store)) == 1
    store.close()


def test_a_tombstone_counts_whichever_partition_is_read_first(tmp_path: Path) -> None:
    deleted = Kept(2, 0, b"ann", None, timestamp_ms=20)
    before = Kept(0, 7, b"ann", b"old", timestamp_ms=10)
    for name, order in (("a", (deleted, before)), ("b", (before, deleted))):
        store = open_store(tmp_path / name)
        for each in order:
            store.apply([each], {each.partition: each.offset + 1}, now_ms=100)
        assert stored_rows(store) == {}
        store.close()


def test_old_tombstones_are_swept_with_what_they_delete(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    records = [
        Kept(0, 0, b"gone", b"old", timestamp_ms=10),
        Kept(1, 0, b"gone", None, timestamp_ms=20),
        Kept(0, 1, b"moved", None, timestamp_ms=10),
        Kept(1, 1, b"moved", b"new", timestamp_ms=20),
    ]
    store.apply(records, {0: 2, 1: 2}, now_ms=1000)
    store.apply([Kept(0, 2, b"later", None)], {0: 3}, now_ms=2000)
    assert store.sweep(before_ms=1000, count_max=10) == 0
    assert store.sweep(before_ms=1001, count_max=10) == 2
    assert stored_rows(store) == {(b"moved", 0, 0): b"new"}
    left = store._reader.execute("SELECT key, value FROM rows ORDER BY key").fetchall()
    assert left == [(b"later", None), (b"moved", b"new")]
    plan = store._writer.execute("EXPLAIN QUERY PLAN SELECT * FROM rows WHERE deleted_ms < 5")
    assert "USING INDEX tombstones" in plan.fetchone()[3]
    store.close()


def test_of_equal_times_the_partition_that_came_later_counts(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.apply([Kept(1, 0, b"k", b"1"), Kept(0, 0, b"k", b"0")], {0: 1, 1: 1}, now_ms=0)
    assert stored_rows(store) == {(b"k", 0, 0): b"1"}
    assert store.shape is PLAIN
    store.close()
