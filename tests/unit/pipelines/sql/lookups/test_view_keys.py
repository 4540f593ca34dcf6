"""Keys as they are typed."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.lookups.view_keys import key_of
from moldau.pipelines.sql.relations import Column, Relation, RelationKind


def _table(**types: str) -> Relation:
    columns = tuple(Column(name, kind, is_key=True) for name, kind in types.items())
    return Relation("t", RelationKind.TABLE, "t", (*columns, Column("v", "int")))


@pytest.mark.parametrize(
    ("table", "text", "key"),
    [
        (_table(a="string"), "ann", "ann"),
        (_table(a="string"), "5", "5"),
        (_table(a="bigint"), "5", 5),
        (_table(a="int"), '{"a": 5}', 5),
        (_table(a="string", b="int"), '{"b": 1, "a": "x"}', {"a": "x", "b": 1}),
        (_table(a="string", window="struct<start: timestamp, end: timestamp>"), "ann", "ann"),
    ],
)
def test_a_key_is_understood(table: Relation, text: str, key: object) -> None:
    assert key_of(table, text) == key


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        (_table(a="bigint"), "ann", 'key ann: {"a": bigint} is wanted, as JSON'),
        (_table(a="bigint"), "true", 'key true: {"a": bigint} is wanted, as JSON'),
        (
            _table(a="string", b="int"),
            '{"a": 1}',
            'key {"a": 1}: {"a": string, "b": int} is wanted, as JSON',
        ),
        (_table(), "x", "t has no key"),
    ],
)
def test_what_is_no_key_is_refused(table: Relation, text: str, message: str) -> None:
    with pytest.raises(PipelineError) as caught:
        key_of(table, text)
    assert str(caught.value) == message
