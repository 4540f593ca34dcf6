"""Every statement and every error, as somebody has read them."""

from dataclasses import fields
from pathlib import Path

import pytest

from moldau.pipelines import examples
from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.properties import Properties
from moldau.pipelines.sql.language.queries import Fragment, SelectQuery, TableUse
from moldau.pipelines.sql.language.statements import Statement
from moldau.pipelines.sql.relations import Column
from tests.golden_text import FOLDER, check_golden

SQL = FOLDER / "sql"
SHOP = Path(examples.__file__).with_name("shop.sql")


def test_the_file_of_the_guide() -> None:
    """What a reader pastes at once."""
    said = [_show(each) for each in parse(SHOP.read_text())]
    check_golden("shop", "\n\n".join(said) + "\n", "sql")


def test_statements() -> None:
    """All of them, in ksqlDB's spellings and in ours."""
    parts = [
        "\n".join([_quote(text), *(_show(each) for each in parse(text))])
        for text in (SQL / "statements.sql").read_text().strip().split("\n\n")
    ]
    check_golden("statements", "\n\n".join(parts) + "\n", "sql")


def test_errors() -> None:
    """Each says what was expected, and where."""
    parts = []
    for text in (SQL / "errors.sql").read_text().strip().split("\n\n"):
        with pytest.raises(SqlError) as raised:
            pytest.fail(f"{text}: {parse(text)}")
        parts.append(f"{_quote(text)}\n{raised.value}")
    check_golden("errors", "\n\n".join(parts) + "\n", "sql")


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _show(statement: Statement) -> str:
    lines = [f"{type(statement).__name__} (line {statement.line}, column {statement.column})"]
    for field in fields(statement):
        value = getattr(statement, field.name)
        if field.name in ("text", "line", "column") or value in (None, (), False, Properties()):
            continue
        lines += [f"  {field.name}: {each}" for each in _shown(value)]
    return "\n".join(lines)


def _shown(value: object) -> list[str]:
    match value:
        case SelectQuery():
            said = [" ".join(value.render().split()), *(f"reads {_use(t)}" for t in value.tables)]
        case Statement():
            said = [_show(value).replace("\n", "\n  ")]
        case Column():
            said = [f"{value.name} {value.type}{' KEY' * value.is_key}"]
        case Fragment():
            said = [value.text]
        case (tuple(), *_):
            said = [", ".join(f.text for f in row) for row in value]
        case tuple():
            said = [line for each in value for line in _shown(each)]
        case Properties():
            parts = {each.name: getattr(value, each.name) for each in fields(value)}
            said = [", ".join(f"{name}={part}" for name, part in parts.items() if part)]
        case _:
            said = [str(value)]
    return said


def _use(table: TableUse) -> str:
    alias = f" as {table.alias}" if table.alias else ""
    return f"{table.name}{alias}{f', {table.as_of!r}' if table.as_of else ''}"
