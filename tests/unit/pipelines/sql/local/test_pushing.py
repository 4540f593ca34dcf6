"""Which questions without an end need no state."""

import pytest

from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, Definition
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.local.pushing import check_stateless
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

COLUMNS = (Column("id", "string", is_key=True), Column("n", "int"))
SNAPSHOT = CatalogSnapshot(
    {
        "s": Definition(Relation("s", RelationKind.STREAM, "s", COLUMNS), "", 0),
        "t": Definition(Relation("t", RelationKind.TABLE, "t", COLUMNS), "", 0),
    }
)


def check(text: str) -> None:
    (select,) = parse(text)
    assert isinstance(select, Select)
    check_stateless(select, SNAPSHOT)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s EMIT CHANGES",
        "SELECT upper(id) AS id, n + 1 FROM s x WHERE x.n > 3 EMIT CHANGES LIMIT 5",
        "SELECT * FROM undeclared EMIT CHANGES",
    ],
)
def test_each_record_alone(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM s EMIT CHANGES",
        "SELECT id, count(*) FROM s GROUP BY id EMIT CHANGES",
        "SELECT collect_list(n) FROM s EMIT CHANGES",
        "SELECT DISTINCT id FROM s EMIT CHANGES",
        "SELECT row_number() OVER (ORDER BY n) FROM s EMIT CHANGES",
        "SELECT * FROM s JOIN t ON s.id = t.id EMIT CHANGES",
        "SELECT * FROM s WHERE n > (SELECT max(n) FROM t) EMIT CHANGES",
        "SELECT * FROM t EMIT CHANGES",
        "SELECT id, count(*) FROM s GROUP BY id, window(n, '1 minute') EMIT FINAL",
    ],
)
def test_more_than_a_record_is_for_spark(text: str) -> None:
    with pytest.raises(GoesToSpark):
        check(text)
