"""Joins of tables by a foreign key, against a join of the rows that are there."""

from collections.abc import Iterator
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.foreign_keys import (
    JoinedChange,
    Note,
    Pointer,
    meet,
    point,
    stay_alone,
)

Left = tuple[bytes | None, str]
How = Literal["inner", "left"]


class DictRows:
    """Rows in memory."""

    def __init__(self) -> None:
        self.rows: dict[bytes, str] = {}

    def get(self, key: bytes) -> str | None:
        return self.rows.get(key)

    def put(self, key: bytes, row: str | None) -> None:
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def items(self) -> Iterator[tuple[bytes, str]]:
        yield from self.rows.items()


class Join:
    """Both steps of a join, with all of their states."""

    def __init__(self, how: How) -> None:
        self._how = how
        self.pointers: dict[bytes, Pointer] = {}
        self.rights: dict[bytes, str] = {}
        self.places: dict[bytes, DictRows] = {}

    def batch(
        self, left: dict[bytes, Left | None], right: dict[bytes, str | None]
    ) -> list[JoinedChange]:
        notes: dict[bytes | None, list[tuple[bytes, Note]]] = {key: [] for key in right}
        for key, row in left.items():
            pointer, told = point(self._how, self.pointers.pop(key, None), *(row or (None, None)))
            if pointer is not None:
                self.pointers[key] = pointer
            for note in told:
                notes.setdefault(note.foreign, []).append((key, note))
        found: list[JoinedChange] = []
        for foreign, here in notes.items():
            if foreign is None:
                found += stay_alone(here)
                continue
            before = self.rights.get(foreign)
            after = right.get(foreign, before)
            if after is None:
                self.rights.pop(foreign, None)
            else:
                self.rights[foreign] = after
            rows = self.places.setdefault(foreign, DictRows())
            found += meet(self._how, (before, after), here, rows)
        return found


KEYS = st.sampled_from([b"a", b"b", b"c"])
FOREIGN = st.sampled_from([b"x", b"y", None])
ROWS = st.sampled_from(["1", "2"])
BATCHES = st.lists(
    st.tuples(
        st.dictionaries(KEYS, st.one_of(st.none(), st.tuples(FOREIGN, ROWS))),
        st.dictionaries(st.sampled_from([b"x", b"y"]), st.one_of(st.none(), ROWS)),
    ),
    max_size=8,
)


@given(st.sampled_from(["inner", "left"]), BATCHES)
def test_the_table_is_that_of_a_join_of_the_rows_that_are_there(
    how: How, batches: list[tuple[dict[bytes, Left | None], dict[bytes, str | None]]]
) -> None:
    join = Join(how)
    lefts: dict[bytes, Left] = {}
    rights: dict[bytes, str] = {}
    table: dict[bytes, tuple[str | None, str | None]] = {}
    for left, right in batches:
        moved = {
            key
            for key, row in left.items()
            if row is not None and key in lefts and lefts[key][0] != row[0]
        }
        told = join.batch(left, right)
        lefts = {key: row for key, row in (lefts | left).items() if row is not None}
        rights = {key: row for key, row in (rights | right).items() if row is not None}
        assert len({key for key, _ in told}) == len(told), "a key is told once in a batch"
        for key, pair in told:
            if pair == (None, None):
                # Only of a row that points elsewhere now it is not known whether it was there.
                assert table.pop(key, None) is not None or key in moved
            else:
                assert table.get(key) != pair or key in moved
                table[key] = pair
        joined = {
            key: (row, None if foreign is None else rights.get(foreign))
            for key, (foreign, row) in lefts.items()
        }
        assert table == {
            key: pair for key, pair in joined.items() if how == "left" or pair[1] is not None
        }
    assert sum(len(place.rows) for place in join.places.values()) == sum(
        foreign is not None for foreign, _ in lefts.values()
    )


def test_a_row_that_moves_is_told_by_its_new_place() -> None:
    join = Join("inner")
    assert join.batch({b"a": (b"x", "1")}, {b"x": "X", b"y": "Y"}) == [
        JoinedChange(b"a", ("1", "X"))
    ]
    assert join.batch({b"a": (b"y", "1")}, {b"x": "X2"}) == [JoinedChange(b"a", ("1", "Y"))]
    assert join.batch({b"a": (b"z", "1")}, {}) == [JoinedChange(b"a", (None, None))]
    assert join.batch({b"a": None}, {b"y": "Y2"}) == []
    assert join.pointers == {}


def test_a_row_that_is_as_it_was_is_not_told() -> None:
    join = Join("left")
    for row in ((b"x", "1"), (None, "1")):
        assert len(join.batch({b"a": row}, {})) == 1
        assert join.batch({b"a": row}, {}) == []
