"""Views as one who answers: rows by key, at once."""

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.lookups.kept_views import KeptViews
from moldau.pipelines.sql.lookups.key_lookups import KeyLookup, read_lookup
from moldau.pipelines.sql.ports import DeclinedError, Result, ResultColumn, ViewRows
from moldau.pipelines.sql.relations import Relation, RelationKind
from moldau.pipelines.sql.session import Session


class ViewEngine:
    """Answers SELECT ... FROM table WHERE key = ..., of what its view has."""

    def __init__(self, views: KeptViews) -> None:
        self._views = views

    @property
    def name(self) -> str:
        """Return what `EXPLAIN` calls it."""
        return "view"

    def select(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> Result:
        """Answer from the view."""
        del session, asker
        table, lookup = self._read(select, snapshot)
        try:
            found = self._views.get(table, lookup.key, lookup.start, lookup.until)
        except PipelineError as error:
            raise DeclinedError(str(error)) from None
        columns = tuple(
            ResultColumn(name, found.columns[place].type) for name, place in lookup.columns
        )
        rows = [tuple(row[place] for _, place in lookup.columns) for row in found.rows]
        return Result(columns, iter([rows]), self.name, (_note(table, found),))

    def explain(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> str:
        """Return how it would answer."""
        del session, asker
        table, lookup = self._read(select, snapshot)
        windows = "" if lookup.start is None and lookup.until is None else ", some windows"
        return f"The view of {table.name}, by key {lookup.key!r}{windows}"

    def _read(self, select: Select, snapshot: CatalogSnapshot) -> tuple[Relation, KeyLookup]:
        tables = select.query.tables
        table = snapshot.find(tables[0].name) if len(tables) == 1 else None
        if select.emit is not None:
            raise DeclinedError("a view answers what ends")
        if table is None or table.kind is not RelationKind.TABLE or tables[0].as_of is not None:
            raise DeclinedError("a view is of one table, as it is now")
        if (reason := self._views.check(table)) is not None:
            raise DeclinedError(reason)
        return table, read_lookup(select, table)


def _note(table: Relation, found: ViewRows) -> str:
    places = ", ".join(
        f"{partition}: {offset}" for partition, offset in sorted(found.offsets.items())
    )
    state = "caught up" if found.is_caught_up else "NOT caught up: it still reads the topic"
    return f"view of {table.name}, {state}; offsets by partition {{{places}}}"
