"""CREATE OR REPLACE: which queries can go on with what is to be put in place of a relation."""

from collections.abc import Callable
from dataclasses import replace

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.catalog import CatalogError
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, PersistentQuery, folded
from moldau.pipelines.sql.catalog.replaced import check_columns
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect
from moldau.pipelines.sql.ports import QueryPlan
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.session import Session

Understand = Callable[[CreateAs | InsertSelect, CatalogSnapshot, Session], QueryPlan]
"""Understands a query against a catalog, without running it."""


def check_queries(
    snapshot: CatalogSnapshot, relation: Relation, made_by: CreateAs | None, plan: Understand
) -> None:
    """Refuse to replace a relation if one of its queries could not go on, or would mean another.

    `made_by` is the statement whose query makes it from now on. All queries that read it or insert
    into it are understood once more, also those that do not run now: they may go on later.
    """
    found = snapshot.definitions.get(folded(relation.name))
    if found is None:
        return
    changed = {folded(relation.name): replace(found, relation=relation)}
    after = replace(snapshot, definitions={**snapshot.definitions, **changed})
    involved = {
        each.id: each
        for each in (*snapshot.writers(relation.name), *snapshot.readers(relation.name))
    }
    for query in involved.values():
        if query.makes_its_sink and query.writes(relation.name):
            assert made_by is not None, "the catalog has refused a declaration in place of a query"
            settings = Session(query.settings)
            before = plan(_statement(query), snapshot, settings)
            _check_plans(query, before, plan(made_by, after, settings))
        elif all(after.find(each) is not None for each in query.sources):
            _check_other(query, after, plan)


def _statement(query: PersistentQuery) -> CreateAs | InsertSelect:
    (statement,) = parse(query.statement)
    assert isinstance(statement, CreateAs | InsertSelect)
    return statement


def _check_plans(query: PersistentQuery, before: QueryPlan, now: QueryPlan) -> None:
    for planned in (before, now):
        if planned.state:
            raise CatalogError(
                f"query {query.id} keeps state, of aggregates or joins, which would not be that of "
                f"the new statement: DROP {query.sink} and create it anew"
            )
    if before.reads != now.reads:
        raise CatalogError(
            f"query {query.id} read {_listed(before.reads)}, and would read {_listed(now.reads)}; "
            f"how far it has come is known of the former only: DROP {query.sink} and create it anew"
        )


def _listed(topics: tuple[str, ...]) -> str:
    return " and ".join(topics) or "nothing"


def _check_other(query: PersistentQuery, after: CatalogSnapshot, plan: Understand) -> None:
    sink = after.find(query.sink)
    assert sink is not None, "a query's sink is there as long as the query"
    try:
        planned = plan(_statement(query), after, Session(query.settings))
        if query.makes_its_sink:
            check_columns(sink.columns, planned.columns)
    except PipelineError as error:
        raise CatalogError(
            f"query {query.id} could not go on: {error}; change it first, or TERMINATE and DROP it"
        ) from error
