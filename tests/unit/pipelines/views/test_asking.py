"""Keys on their way to a server."""

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.lookups.view_keys import key_of
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.pipelines.views.asking import find_served, key_text

PAIR = {"a": "string", "b": "int"}


@pytest.mark.parametrize(
    ("types", "key", "arrived"),
    [
        ({"a": "string"}, "7", "7"),
        ({"a": "bigint"}, -7, -7),
        (PAIR, ("x", 1), {"a": "x", "b": 1}),
        (PAIR, {"b": 1, "a": "ř"}, {"a": "ř", "b": 1}),
        ({"a": "struct<b:int>"}, {"b": 1}, {"b": 1}),
    ],
)
def test_a_key_arrives_as_it_was(types: dict[str, str], key: object, arrived: object) -> None:
    columns = tuple(Column(name, kind, is_key=True) for name, kind in types.items())
    text = key_text(types, key)
    assert text is not None
    assert key_of(Relation("t", RelationKind.TABLE, "t", columns), text) == arrived


def test_bytes_do_not_travel_and_wrong_keys_are_refused() -> None:
    assert key_text({"a": "binary"}, b"x") is None
    with pytest.raises(PipelineError, match="int is wanted"):
        key_text({"a": "int"}, "x")


def test_a_server_that_does_not_answer_is_passed_by() -> None:
    assert find_served(["http://127.0.0.1:1"], "users", {"a": "string"}) is None
