"""A view beside a broker: it follows, whatever becomes of the topic, the broker and itself."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from moldau import Admin, Producer
from moldau.pipelines.views.store import Store
from moldau.pipelines.views.view import View
from moldau.testing import Broker

DEADLINE_SECONDS = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@contextmanager
def following(
    broker: Broker, topic: str, folder: Path, said: list[str] | None = None, **key: str
) -> Iterator[View]:
    config = {"bootstrap.servers": broker.bootstrap_servers}
    say = [].append if said is None else said.append
    with View(topic, key or {"id": "string"}, folder, config, say=say) as view:
        yield view


def send(broker: Broker, topic: str, *records: tuple, partition: int | None = None) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for key, value in records:
            producer.send(topic, value, key=key, partition=partition)
        producer.flush()


def rows_of(view: View) -> dict[str, bytes]:
    assert view.wait_until_caught_up(DEADLINE_SECONDS), view.progress
    answer = view.scan(1_000_000)
    assert answer.caught_up
    return {row.key["id"]: row.value for row in answer.rows}


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_follows_and_answers_by_key(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(partitions=3)
    send(broker, topic, *((b"k%d" % n, b"v%d" % n) for n in range(100)), (None, b"no key"))
    with following(broker, topic, tmp_path) as view:
        assert len(rows_of(view)) == 100
        answer = view.get("k7")
        assert answer.row is not None
        assert (answer.row.value, answer.caught_up) == (b"v7", True)
        assert answer.partition == answer.row.partition
        assert answer.offset > answer.row.offset
        send(broker, topic, (b"k7", None), (b"k8", b"new"))
        assert len(rows_of(view)) == 99
        gone = view.get("k7")
        assert (gone.row, gone.partition, gone.caught_up) == (None, answer.partition, True)
        assert gone.offset > answer.offset
        assert view.get("k8").row.value == b"new"
        assert view.progress.lag == 0
        assert [row.key["id"] for row in view.scan(2).rows] == ["k0", "k1"]


def test_it_goes_on_where_it_was(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(partitions=2)
    send(broker, topic, (b"a", b"1"), (b"b", b"1"))
    with following(broker, topic, tmp_path) as view:
        assert rows_of(view) == {"a": b"1", "b": b"1"}
        before = view.progress.positions
    send(broker, topic, (b"a", b"2"), (b"b", None))
    config = {"bootstrap.servers": broker.bootstrap_servers}
    view = View(topic, {"id": "string"}, tmp_path, config)
    # Before it follows, it answers with what it has, and says so.
    assert view.progress.positions == before
    answer = view.get("a")
    assert (answer.row.value, answer.caught_up) == (b"1", False)
    view.start()
    assert rows_of(view) == {"a": b"2"}
    view.close()


def test_what_is_not_committed_is_not_seen(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    with Producer(broker.bootstrap_servers, transactional_id="views") as producer:
        producer.init_transactions()
        for value in (b"1", b"2"):
            producer.begin_transaction()
            producer.send(topic, value, key=b"a")
            producer.flush()
            end = producer.commit_transaction if value == b"1" else producer.abort_transaction
            end()
    with following(broker, topic, tmp_path) as view:
        assert rows_of(view) == {"a": b"1"}
        # A record and its marker, twice.
        assert view.progress.positions == {0: 4}


def test_partitions_that_are_added_are_followed(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    send(broker, topic, (b"a", b"1"), (b"b", b"1"))
    with following(broker, topic, tmp_path) as view:
        assert rows_of(view) == {"a": b"1", "b": b"1"}
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_partitions(topic, 3)
        send(broker, topic, (b"a", b"2"), partition=1)
        send(broker, topic, (b"b", None), partition=2)
        eventually(lambda: len(view.progress.ends) == 3)
        assert rows_of(view) == {"a": b"2"}
        assert view.get("a").partition == 1


def test_a_topic_created_anew_is_another_one(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(partitions=2)
    said: list[str] = []
    send(broker, topic, *((b"old%d" % n, b"1") for n in range(50)))
    with following(broker, topic, tmp_path, said) as view:
        assert len(rows_of(view)) == 50
        with Admin(broker.bootstrap_servers) as admin:
            admin.delete_topics([topic])
        broker.create_topic(topic, partitions=2)
        send(broker, topic, (b"new", b"1"))
        assert rows_of(view) == {"new": b"1"}
    assert any("the topic is another one" in words for words in said)
    # And while nobody was looking.
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_topics([topic])
    broker.create_topic(topic)
    send(broker, topic, (b"newer", b"1"), (b"newest", b"1"))
    with following(broker, topic, tmp_path, said) as view:
        assert rows_of(view) == {"newer": b"1", "newest": b"1"}


def test_records_that_were_deleted_unread_are_told_of(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(partitions=2)
    said: list[str] = []
    send(broker, topic, (b"a", b"1"), (b"b", b"1"), partition=0)
    send(broker, topic, (b"c", b"1"), partition=1)
    with following(broker, topic, tmp_path, said) as view:
        assert rows_of(view) == {"a": b"1", "b": b"1", "c": b"1"}
    send(broker, topic, (b"a", None), (b"b", b"2"), partition=0)
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({(topic, 0): 3})
    with following(broker, topic, tmp_path, said) as view:
        assert rows_of(view) == {"b": b"2", "c": b"1"}
    assert len(said) == 1
    assert "partition 0 has lost records that the view has not read: built anew" in said[0]


def test_a_log_that_begins_later_is_read_from_there(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    said: list[str] = []
    send(broker, topic, (b"a", b"1"), (b"b", b"1"))
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({(topic, 0): 1})
    with following(broker, topic, tmp_path, said) as view:
        assert rows_of(view) == {"b": b"1"}
    assert said == []


def test_a_broker_that_restarts_is_waited_for(tmp_path: Path) -> None:
    with Broker() as broker:
        topic = broker.topic(partitions=2)
        send(broker, topic, (b"a", b"1"))
        with following(broker, topic, tmp_path) as view:
            assert rows_of(view) == {"a": b"1"}
            broker.restart()
            send(broker, topic, (b"a", b"2"), (b"b", b"1"))
            assert rows_of(view) == {"a": b"2", "b": b"1"}


def test_without_a_broker_it_answers_with_what_it_has(tmp_path: Path) -> None:
    said: list[str] = []
    with Broker() as broker:
        topic = broker.topic()
        send(broker, topic, (b"a", b"1"))
        with following(broker, topic, tmp_path) as view:
            assert rows_of(view) == {"a": b"1"}
        servers = broker.bootstrap_servers
    config = {"bootstrap.servers": servers}
    with View(topic, {"id": "string"}, tmp_path, config, say=said.append) as view:
        eventually(lambda: view.progress.error is not None)
        answer = view.get("a")
        assert (answer.row.value, answer.caught_up) == (b"1", False)
        assert not view.wait_until_caught_up(0)
    assert said


def test_a_topic_that_is_not_there_is_waited_for(broker: Broker, tmp_path: Path) -> None:
    said: list[str] = []
    with following(broker, "comes-later", tmp_path, said) as view:
        eventually(lambda: view.progress.error is not None)
        assert "UNKNOWN_TOPIC_OR_PARTITION" in said[0]
        broker.create_topic("comes-later")
        send(broker, "comes-later", (b"a", b"1"))
        assert rows_of(view) == {"a": b"1"}
        assert view.progress.error is None


def test_a_file_damaged_under_it_is_built_anew(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    said: list[str] = []
    send(broker, topic, *((b"k%d" % n, bytes(100)) for n in range(5000)))
    with following(broker, topic, tmp_path) as view:
        assert len(rows_of(view)) == 5000
    file = tmp_path / "view.sqlite"
    data = bytearray(file.read_bytes())
    for page in range(8, len(data) // 8192):
        data[page * 8192 : page * 8192 + 100] = b"\xff" * 100
    file.write_bytes(data)
    with following(broker, topic, tmp_path, said) as view:
        # The follower or a reader meets it, whoever comes first.
        send(broker, topic, *((b"k%d" % n, b"new") for n in range(0, 5000, 50)))
        eventually(lambda: any("is damaged" in words for words in said))
        rows = rows_of(view)
    assert (len(rows), rows["k50"], rows["k51"]) == (5000, b"new", bytes(100))
    assert (tmp_path / "view.sqlite.damaged").exists()


def test_windows_are_asked_by_key_and_range(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(partitions=2)
    for user in ("ann", "bob"):
        for minute in (1, 2, 3):
            start, end = (f"2026-01-01T12:0{at}:00.000000Z" for at in (minute, minute + 1))
            key = f'{{"user":"{user}","window":{{"start":"{start}","end":"{end}"}}}}'
            send(broker, topic, (key.encode(), f"{user}{minute}".encode()))
    types = {"user": "string", "window": "struct<start: timestamp, end: timestamp>"}
    with following(broker, topic, tmp_path, **types) as view:
        assert view.wait_until_caught_up(DEADLINE_SECONDS)
        assert [row.value for row in view.get_range("ann").rows] == [b"ann1", b"ann2", b"ann3"]
        two, three = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (2, 3))
        answers = view.get_range("ann", two, three)
        assert [row.value for row in answers.rows] == [b"ann2"]
        assert answers.rows[0].key == {"user": "ann", "window": {"start": two, "end": three}}
        assert answers.offsets == view.progress.positions
        assert view.get_range("bob", "2026-01-01T12:02:00Z").rows[0].value == b"bob2"
        answer = view.get(("bob", {"start": two, "end": three}))
        assert (answer.row.value, answer.caught_up) == (b"bob2", True)
        absent = view.get(("eve", {"start": two, "end": three}))
        assert (absent.row, absent.partition in (0, 1)) == (None, True)


def test_stopping_before_or_after_is_fine(broker: Broker, tmp_path: Path) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers}
    View(broker.topic(), {"id": "string"}, tmp_path, config).close()
    view = View(broker.topic(), {"id": "string"}, tmp_path, config, say=[].append).start()
    view.close()
    view.close()


def test_a_full_disk_is_told_of_once_and_waited_for(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    send(broker, topic, (b"a", b"1"))
    said: list[str] = []
    tries: list[int] = []
    apply = Store.apply

    def apply_when_there_is_room(store: Store, *args: object, **kwargs: object) -> int:
        tries.append(1)
        if len(tries) < 4:
            raise sqlite3.OperationalError("database or disk is full")
        return apply(store, *args, **kwargs)

    monkeypatch.setattr(Store, "apply", apply_when_there_is_room)
    with following(broker, topic, tmp_path, said) as view:
        assert rows_of(view) == {"a": b"1"}
        assert view.progress.error is None
    assert len(tries) >= 4
    assert said == [f"view of topic {topic}: database or disk is full; trying again"]
