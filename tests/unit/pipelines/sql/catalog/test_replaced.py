"""What may be put in place of a stream or a table."""

from dataclasses import replace

import pytest

from moldau.pipelines.sql.catalog.replaced import ReplacedError, check_relation
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

KEY, N, EXTRA = Column("id", "string", is_key=True), Column("n", "int"), Column("x", "double")
BEFORE = Relation("s", RelationKind.STREAM, "topic", (KEY, N), "json", "at", "1 day")


def test_further_columns_and_what_readers_may_not_mind() -> None:
    check_relation(BEFORE, BEFORE)
    check_relation(BEFORE, replace(BEFORE, columns=(KEY, N, EXTRA)))
    check_relation(BEFORE, replace(BEFORE, watermark="1 hour", on_error="skip", partitions=3))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(BEFORE, kind=RelationKind.TABLE), "its kind was stream, and would be table"),
        (replace(BEFORE, topic="other"), "its topic was topic, and would be other"),
        (replace(BEFORE, format="raw"), "its format was json, and would be raw"),
        (replace(BEFORE, event_time=None), "its event_time was at, and would be none"),
        (replace(BEFORE, event_time_unit="s"), "its event_time_unit was none, and would be s"),
        (
            replace(BEFORE, watermark=None),
            "its watermark was 1 day, and would be none; only its length may change",
        ),
        (
            replace(BEFORE, columns=(KEY,)),
            "column n would be missing; further columns come behind the last",
        ),
        (
            replace(BEFORE, columns=(KEY, EXTRA, N)),
            "column n would be missing, where x is now; further columns come behind the last",
        ),
        (
            replace(BEFORE, columns=(KEY, replace(N, type="bigint"))),
            "column n was int, and would be bigint",
        ),
        (
            replace(BEFORE, columns=(replace(KEY, is_key=False), N)),
            "column id would be of the key no more",
        ),
        (
            replace(BEFORE, columns=(KEY, replace(N, is_key=True))),
            "column n would be of the key",
        ),
        (
            replace(BEFORE, columns=(KEY, N, replace(EXTRA, is_key=True))),
            "column x would be one more of the key",
        ),
    ],
)
def test_what_would_be_another(now: Relation, said: str) -> None:
    with pytest.raises(ReplacedError) as caught:
        check_relation(BEFORE, now)
    assert str(caught.value) == said
