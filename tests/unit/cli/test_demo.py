"""What the demo's shop invents, and how it is shown; tests/spark runs it."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moldau import Consumer
from moldau.cli import sql_parts
from moldau.cli.demo_next import SQL_FILE, next_steps, sql_command
from moldau.cli.demo_run import PAST, feed
from moldau.cli.demo_screen import Screen, cells_of
from moldau.cli.demo_shop import USERS, Shop
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, relation_of
from moldau.pipelines.sql.local.json_exact import read_json
from moldau.pipelines.sql.local.types import parse_type
from moldau.testing.broker import Broker

ROWS = {
    "orders-enriched": {
        "id": "o1",
        "user": "ann",
        "name": None,
        "city": None,
        "amount": 3.5,
        "at": "2026-11-16T08:00:03.250000Z",
    },
    "minute-totals": {
        "user": "ann",
        "total": 9.0,
        "window": {"start": "2026-11-16T08:00:00.000000Z", "end": "2026-11-16T08:01:00.000000Z"},
    },
    "views": {"page": "/", "views": 2, "window": {"start": "2026-11-16T08:00:00.000000Z"}},
}


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    """Have a clock on the wall that shows UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_orders_are_of_users_that_are_there() -> None:
    shop = Shop(random.Random(1))
    known = {event.key for event in shop.open()}
    assert known == set(USERS)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    events = [event for _ in range(100) for event in shop.happen(noon)]
    orders = [event for event in events if event.topic == "orders"]
    assert len({event.key for event in orders}) == len(orders) == 100
    assert {event.value["user"] for event in orders} <= known
    assert {event.topic for event in events} == {"orders", "clicks", "users"}


def test_rows_are_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    for each in ROWS.items():
        assert not screen.is_full
        screen.add([each])
    screen.draw("nobody sees it")
    assert screen.is_full
    assert capsys.readouterr().out.splitlines() == [
        "orders-enriched: o1 ann - - 3.50",
        "minute-totals: 08:00 ann 9.00",
        "views: 08:00 / 2",
    ]


def test_a_terminal_is_drawn_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    screen = Screen()
    screen.add([("minute-totals", ROWS["minute-totals"])])
    assert capsys.readouterr().out == ""
    screen.draw("moldau demo")
    shown = capsys.readouterr().out
    assert shown.startswith("\033[H\033[Jmoldau demo\n")
    assert "MINUTE  USER  TOTAL\n08:00   ann    9.00\n" in shown


@pytest.mark.parametrize(("lines", "rows"), [(24, 4), (60, 6), (5, 1)])
def test_a_small_terminal_has_room_for_all_tables(
    monkeypatch: pytest.MonkeyPatch, lines: int, rows: int
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", str(lines))
    screen = Screen()
    screen.add([each for each in ROWS.items() for _ in range(10)])
    shown = screen.text().splitlines()
    assert len(shown) == 3 * (3 + rows)


def total(user: str, minute: int) -> tuple[str, dict[str, Any]]:
    window = {"start": f"2026-11-16T08:{minute:02}:00.000000Z"}
    return "minute-totals", {"user": user, "total": 1.0, "window": window}


def test_rows_are_shown_by_their_time_whenever_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "60")
    screen = Screen()
    screen.add([total(user, minute) for minute in (2, 1) for user in ("zoe", "ann", "bob")])
    screen.add([total("eva", 1)])
    shown = screen.text()
    found = [line.split()[:2] for line in shown.splitlines() if line.startswith("08:")]
    assert found == [
        ["08:01", "bob"], ["08:01", "eva"], ["08:01", "zoe"],
        ["08:02", "ann"], ["08:02", "bob"], ["08:02", "zoe"],
    ]  # fmt: skip


def test_minutes_are_those_of_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-1")
    time.tzset()
    assert cells_of(*total("ann", 5))[0] == "09:05"


def test_the_shop_begins_in_the_past_and_goes_on_now() -> None:
    stopping = threading.Event()
    with Broker() as broker:
        for topic in ("orders", "users", "clicks"):
            broker.create_topic(topic)
        began = datetime.now(UTC)
        feeder = threading.Thread(target=feed, args=(broker.bootstrap_servers, stopping))
        feeder.start()
        times: list[datetime] = []
        with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign_topics("orders")
            deadline = time.monotonic() + 60
            while not times or times[-1] < began:
                assert time.monotonic() < deadline
                orders = [json.loads(each.value or b"") for each in consumer.poll(timeout_ms=500)]
                times += [datetime.fromisoformat(each["at"]) for each in orders]
        stopping.set()
        feeder.join()
    assert times == sorted(times)
    assert began - PAST <= times[0] < began - PAST + timedelta(minutes=1)
    assert times[-1] <= datetime.now(UTC)


def test_sql_is_suggested_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    place = Path(sys.executable).parent / "moldau"
    assert sql_command("localhost:1").endswith("moldau sql -b localhost:1")
    if place.exists():
        assert sql_command("localhost:1").startswith(str(place))
    assert "pip install" not in next_steps()
    monkeypatch.setattr(sql_parts, "find_spec", lambda _name: None)
    assert sql_command("localhost:1").startswith("pip install 'moldau[sql]' && ")
    assert "  pip install 'moldau[sql]'\n  moldau sql " in next_steps()


def test_what_to_type_next_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moldau").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "export PATH" not in next_steps()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert f'  export PATH="{tmp_path}:$PATH"\n  moldau start ' in next_steps()


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from moldau.cli import main
sys.exit(main(["demo"]))
"""


def test_without_spark_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "moldau: moldau needs PySpark 4.2 or newer: pip install 'moldau[spark]'\n"
    )


def test_the_demo_feeds_the_topics_of_its_sql() -> None:
    """Every column of shop.sql is in the records, and decodes: tests/spark runs the file."""
    shop = Shop(random.Random(1))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    events = {event.topic: event for event in (*shop.open(), *shop.happen(noon))}
    declared = [each for each in parse(SQL_FILE.read_text()) if isinstance(each, CreateSource)]
    assert {relation_of(each).topic for each in declared} == {"orders", "users"}
    for relation in map(relation_of, declared):
        event = events[relation.topic]
        assert event.key is not None
        assert [each.type for each in relation.keys] == ["string"]
        fields = [(each.name, parse_type(each.type)) for each in relation.values]
        read = read_json(json.dumps(event.value).encode(), fields)
        assert None not in read.values(), read


def test_the_guide_begins_with_the_file() -> None:
    text = SQL_FILE.read_text()
    assert f"```sql\n{text}```" in Path("docs/sql.md").read_text()
