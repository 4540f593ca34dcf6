"""`moldau sql` without a server: its command line, what it prints, and when Enter is enough."""

import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.cli import main
from moldau.cli.frame import CommandError
from moldau.cli.sql import make_parser
from moldau.cli.sql_answers import AnswerPrinter
from moldau.cli.sql_parts import check_installed, split_address
from moldau.cli.sql_script import Script
from moldau.cli.sql_shell import history_file, is_enough
from moldau.cli.sql_table import RowTable, cell_text

COLUMNS = [{"name": "user", "type": "string"}, {"name": "total", "type": "decimal(10,2)"}]


def test_what_is_said_before_the_action_is_not_forgotten() -> None:
    options = make_parser().parse_args(["-b", "there:9092", "server", "--service", "shop"])
    assert (options.bootstrap, options.service) == ("there:9092", "shop")
    assert options.listen == "127.0.0.1:8088"
    options = make_parser().parse_args(["--service", "shop", "server", "-b", "there:9092"])
    assert (options.bootstrap, options.service) == ("there:9092", "shop")


def test_a_server_takes_no_statements(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["sql", "-e", "SHOW TOPICS", "server"])
    assert "moldau: sql: a server takes no statements" in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-f", "nowhere.sql"]) == 1
    assert capsys.readouterr().err == "moldau: nowhere.sql: No such file or directory\n"


def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--server", "http://127.0.0.1:1", "-e", "SHOW TOPICS"]) == 1
    assert capsys.readouterr().err.startswith("moldau: no server answers at http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("text", "found"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:8088", ("::1", 8088)), ("h:1", ("h", 1))],
)
def test_addresses(text: str, found: tuple[str, int]) -> None:
    assert split_address(text) == found


@pytest.mark.parametrize("text", ["8088", "host", "host:", "host:http", "host:70000"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(CommandError, match="HOST:PORT is wanted"):
        split_address(text)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr("moldau.cli.sql_parts.find_spec", sys.modules.get)
    with pytest.raises(CommandError, match=r"duckdb is not installed: pip install 'moldau\[sql\]'"):
        check_installed()


def test_numbers_stand_to_the_right_by_their_type() -> None:
    table = RowTable(COLUMNS, is_live=False)
    assert table.lines([["ann", "12.50"], ["bob", None]]) == [
        "USER  TOTAL",
        "ann   12.50",
        "bob    NULL",
    ]
    # What is printed stays: columns grow, and the head is not repeated.
    assert table.lines([["barbora", "7.00"]]) == ["barbora   7.00"]


def test_cells_are_one_line() -> None:
    assert [cell_text(each) for each in (None, True, 1.5, "a\nb", "ř", {"a": [1]})] == [
        "NULL", "true", "1.5", "a\\nb", "ř", '{"a": [1]}',
    ]  # fmt: skip
    window = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"}
    assert cell_text(window) == "[2026-01-01T00:00:00Z, 2026-01-01T00:01:00Z)"


def answers(*rows: list[Any], note: str = "as of offset 7") -> list[dict[str, Any]]:
    head = {"statement": 1, "columns": COLUMNS, "engine": "local", "notes": [note]}
    return [head, *({"row": row} for row in rows), {"statement": 1, "rows": len(rows)}]


def test_rows_wait_for_their_widths_unless_they_are_live() -> None:
    lines: list[str] = []
    notes: list[str] = []
    printer = AnswerPrinter(as_json=False, write=lines.append, note=notes.append, has_counts=True)
    *begin, end = answers(["ann", "1.00"], ["barbora", "2.00"])
    for each in begin:
        printer.take(each)
    assert lines == []
    printer.take(end)
    assert lines == ["USER     TOTAL", "ann       1.00", "barbora   2.00"]
    assert notes == ["as of offset 7", "2 rows"]

    lines.clear()
    live = AnswerPrinter(as_json=False, live={1}, write=lines.append, note=notes.append)
    for each in begin:
        live.take(each)
    assert lines == ["USER      TOTAL", "ann        1.00", "barbora    2.00"]


def test_nothing_is_null_only_where_rows_are_data() -> None:
    lines: list[str] = []
    printer = AnswerPrinter(as_json=False, write=lines.append, note=lambda _: None)
    columns = [{"name": each, "type": "string"} for each in ("column", "key", "type")]
    for engine in ("server", "local"):
        printer.take({"statement": 1, "columns": columns, "engine": engine})
        printer.take({"row": ["name", None, "string"]})
        printer.take({"statement": 1, "rows": 1})
    assert lines == [
        "COLUMN  KEY  TYPE",
        "name         string",
        "COLUMN  KEY   TYPE",
        "name    NULL  string",
    ]


def test_json_is_an_object_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    printer = AnswerPrinter(as_json=True, note=lambda _: None)
    for each in answers(["ann", "1.00"], [None, None]):
        printer.take(each)
    printer.take({"statement": 2, "message": "x is 1 now", "settings": {"x": "1"}})
    assert capsys.readouterr().out.splitlines() == [
        '{"user":"ann","total":"1.00"}',
        '{"user":null,"total":null}',
        '{"message":"x is 1 now"}',
    ]
    assert printer.settings == {"x": "1"}


def test_notes_are_told_beside_the_answers() -> None:
    notes: list[str] = []
    printer = AnswerPrinter(as_json=True, note=notes.append)
    printer.take({"note": "Spark is starting"})
    assert notes == ["Spark is starting"]


def test_which_statements_do_not_end() -> None:
    text = "SHOW TOPICS; PRINT a; SELECT 1; SELECT * FROM a EMIT CHANGES"
    assert Script.of(text).live == {2, 4}
    assert Script.of("SELEC").live == set()


def test_what_only_asks_needs_no_service() -> None:
    text = "SHOW TOPICS; SELECT 1; PRINT a; INSERT INTO a VALUES (1); SET 'a'='b'"
    assert Script.of(text).only_asks
    assert Script.of("SELEC").only_asks
    changing = ("DROP STREAM a", "TERMINATE ALL", "PAUSE a", "RESUME a", "CREATE STREAM a (b INT)")
    for text in changing:
        assert not Script.of(f"SELECT 1; {text}").only_asks


@pytest.mark.parametrize("text", ["", "exit", "\\q", "help;", "SHOW TOPICS;", "SELECT 1;\n"])
def test_enter_is_enough(text: str) -> None:
    assert is_enough(text)


@pytest.mark.parametrize("text", ["SHOW TOPICS", "SELECT ';", "SELECT 1; SELECT 2", "help me"])
def test_enter_begins_another_line(text: str) -> None:
    assert not is_enough(text)


def test_history_is_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "moldau" / "sql_history"
