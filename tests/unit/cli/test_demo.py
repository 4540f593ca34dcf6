"""What the demo's shop invents, and how it is shown; tests/spark runs it."""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from moldau.cli.demo_next import SQL_FILE, next_steps
from moldau.cli.demo_screen import Screen
from moldau.cli.demo_shop import USERS, Shop
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, relation_of
from moldau.pipelines.sql.local.json_exact import read_json
from moldau.pipelines.sql.local.types import parse_type

ROWS = {
    "orders-enriched": {"id": "o1", "user": "ann", "name": None, "city": None, "amount": 3.5},
    "minute-totals": {
        "user": "ann",
        "total": 9.0,
        "window": {"start": "2026-11-16T08:00:00.000000Z", "end": "2026-11-16T08:01:00.000000Z"},
    },
    "views": {"page": "/", "views": 2, "window": {"start": "2026-11-16T08:00:00.000000Z"}},
}


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
    for topic, row in ROWS.items():
        assert not screen.is_full
        screen.add(topic, row)
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
    screen.add("minute-totals", ROWS["minute-totals"])
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
    for topic, row in ROWS.items():
        for _ in range(10):
            screen.add(topic, row)
    shown = screen.text().splitlines()
    assert len(shown) == 3 * (3 + rows)


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
