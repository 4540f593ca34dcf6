"""Functions that are not there: ksqlDB's, and those that are misspelt."""

import re
from pathlib import Path

import pytest

from moldau.pipelines.sql.language.errors import SqlError
from moldau.pipelines.sql.language.ksqldb_functions import COUNTERPARTS
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.spark_functions import SPARK_FUNCTIONS, SYNTAX

GUIDE = Path(__file__).parents[5] / "docs/from-ksqldb.md"


@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
@pytest.mark.parametrize("before", ["", "CREATE TABLE t AS ", "INSERT INTO t ", "EXPLAIN "])
def test_functions_of_ksqldb_have_counterparts(name: str, before: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(f"{before}SELECT a, {name.lower()}(b, c)\nFROM s")
    words = (
        f"there is no function {name.lower()}; instead of ksqlDB's there is {COUNTERPARTS[name]}"
    )
    line, _, carets = str(caught.value).splitlines()
    assert line == f"line 1, column {len(before) + 11}: {words}"
    assert carets.count("^") == len(name)


def test_the_guide_lists_them() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    told = {name: words.replace("`", "") for name, words in rows}
    assert {name: told.get(name) for name in COUNTERPARTS} == COUNTERPARTS


def test_spark_has_none_of_them() -> None:
    assert not {each.lower() for each in COUNTERPARTS} & (SPARK_FUNCTIONS | SYNTAX)
    called = {
        name.lower() for each in COUNTERPARTS.values() for name in re.findall(r"(\w+)\(", each)
    }
    assert called <= SPARK_FUNCTIONS


@pytest.mark.parametrize(
    ("call", "hint"),
    [("summ(a)", "sum"), ("COUTN(*)", "count"), ("dateformat(a, 'y')", "date_format")],
)
def test_a_name_that_is_misspelt(call: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(f"SELECT {call} FROM s WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY b")
    line, _, carets = str(caught.value).splitlines()
    assert line == f"line 1, column 8: there is no function {call.partition('(')[0]}"
    assert re.search(rf"\^ did you mean {hint}( or \w+)?\?$", carets)


@pytest.mark.parametrize(
    "call",
    [
        "my_own_thing(a)",
        "timestampdiff(DAY, a, b)",
        "dateadd(DAY, 1, a)",
        "extract(day FROM a)",
        "UCASE(a)",
        "collect_list(a)",
        "transform(a, x -> x + 1)",
        "count(*) OVER (PARTITION BY a)",
        "CAST(a AS INT)",
    ],
)
def test_what_spark_may_know_goes_to_spark(call: str) -> None:
    assert parse(f"SELECT {call} FROM s")
