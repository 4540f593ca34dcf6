"""What is left to Spark is left with a reason, and nothing of the machine can be reached."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.database import open_database
from moldau.pipelines.sql.local.parsing import parse
from moldau.pipelines.sql.local.refusals import GoesToSpark, QueryError
from moldau.pipelines.sql.local.scopes import FromSource
from moldau.pipelines.sql.local.selects import DuckQuery, Queries
from moldau.pipelines.sql.local.wanted import WantedRelation
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

COLUMNS = (
    Column("id", "string", is_key=True),
    Column("amount", "double"),
    Column("price", "decimal(10,2)"),
    Column("count", "int"),
    Column("at", "timestamp"),
    Column("tags", "array<string>"),
)
MEMORY_BYTES = 256 << 20


def translate(text: str, form: str = "json") -> DuckQuery:
    def find(name: str, _as_of: AsOf | None, alias: str) -> FromSource:
        return WantedRelation(
            Relation(name, RelationKind.STREAM, "t", COLUMNS, form), None, "r0"
        ).source(alias)

    return Queries(find, datetime(2026, 1, 1, tzinfo=UTC)).translate(parse(text))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT percentile_approx(amount, 0.5) FROM t", "percentile_approx"),
        ("SELECT my_function(id) FROM t", "function my_function"),
        ("SELECT explode(tags) FROM t", "function explode"),
        ("SELECT id RLIKE 'a' FROM t", "RLIKE"),
        ("SELECT try_cast(id AS int) FROM t", "function try_cast"),
        ("SELECT CAST(amount AS string) FROM t", "a cast from double to string"),
        ("SELECT price / 2 FROM t", "division of decimals"),
        ("SELECT avg(price) FROM t", r"function avg\(decimal\(10,2\)\)"),
        ("SELECT id = 1 FROM t", "string beside int"),
        ("SELECT id IN (SELECT id FROM t) FROM t", "IN with a query"),
        ("SELECT -count AS count FROM t ORDER BY count + 0", "count is a column, and the name"),
        ("SELECT rand() FROM t", "function rand"),
        ("SELECT id:amount FROM t", "function get_json_object"),
        ("SELECT window(at, '1 minute', '30 seconds') FROM t", "function window"),
        ("SELECT window(at, '1 month') FROM t", "function window"),
        ("SELECT count FROM t GROUP BY ROLLUP (count)", r"ROLLUP \(count\)"),
        ("SELECT * EXCEPT (id) FROM t", "except in star"),
        ("SELECT * FROM read_csv('/etc/passwd')", "READ_CSV"),
        ("SELECT * FROM t TABLESAMPLE (5 ROWS)", "sample in table"),
        ("SELECT * FROM t LATERAL VIEW explode(tags) x AS y", "laterals in select"),
        ("SELECT sum(amount) OVER w FROM t WINDOW w AS (ORDER BY id)", "windows in select"),
        ("SELECT id FROM t SORT BY id", "sort in select"),
        ("SELECT CAST(id AS timestamp_ntz) FROM t", "timestamp_ntz"),
        ("SELECT 1 FROM t, t", "two relations are called t: give one of them another name"),
        ("SELECT at > 'soon' FROM t", "'soon' is no timestamp"),
        ("VALUES (1)", "values is Spark's"),
        ("SELECT FROM WHERE", "not understood"),
    ],
)
def test_what_is_not_the_same_goes_to_spark(query: str, reason: str) -> None:
    with pytest.raises(GoesToSpark, match=reason):
        translate(query)


def test_names_are_quoted() -> None:
    made = translate('SELECT `a"b`.id FROM t AS `a"b`')
    assert made.text == 'SELECT "a""b"."id" AS "c0" FROM "r0" AS "a""b"'


def test_formats_that_are_not_read_here_go_to_spark() -> None:
    with pytest.raises(GoesToSpark, match="t is in format avro"):
        translate("SELECT id FROM t", "avro")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT count AS c FROM t WHERE c > 1", "there is no column c; there are"),
        (
            "SELECT nothing FROM t",
            "there is no column nothing; there are id, amount, price, count, at, tags",
        ),
        ("SELECT id FROM t JOIN t AS u ON t.id = u.id", "column id is ambiguous"),
        ("SELECT id FROM t ORDER BY 2", "there is no column 2"),
        ("SELECT id FROM t UNION SELECT id, at FROM t", "UNION of 1 and 2 columns"),
        ("SELECT x.y FROM (SELECT named_struct('z', 1) AS x FROM t)", "there is no field y"),
    ],
)
def test_what_nobody_can_answer_is_an_error(query: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        translate(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT * FROM query",
    ],
)
def test_the_engine_reaches_nothing(query: str) -> None:
    with pytest.raises(GoesToSpark), open_database(MEMORY_BYTES) as database:
        database.execute(query).fetchall()


def test_what_needs_too_much_memory_goes_to_spark() -> None:
    query = "SELECT count(DISTINCT hash(x)::VARCHAR) FROM range(20000000) t(x)"
    with pytest.raises(GoesToSpark, match="large"), open_database(16 << 20) as database:
        database.execute(query).fetchall()


def test_no_spark_is_imported() -> None:
    program = (
        "import sys\n"
        "import moldau.pipelines.sql.local.answering, moldau.pipelines.sql.assembling\n"
        "assert not [each for each in sys.modules if each.partition('.')[0] in ('pyspark', 'py4j')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
