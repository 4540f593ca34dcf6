"""What the catalog takes and refuses."""

from dataclasses import replace

import pytest

from moldau.pipelines.sql.catalog.catalog import (
    Catalog,
    CatalogDecision,
    CatalogError,
    DeleteCheckpoint,
    DeleteLetters,
    DeleteTopic,
    EnsureTopic,
    StartQuery,
    StopQuery,
)
from moldau.pipelines.sql.catalog.commands import (
    CatalogCommand,
    CreateAsCommand,
    Declare,
    DropCommand,
    InsertSelectCommand,
    PauseCommand,
    ResumeCommand,
    TerminateCommand,
)
from moldau.pipelines.sql.catalog.definitions import Desired
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

ORDERS = Relation(
    "Orders",
    RelationKind.STREAM,
    "orders",
    (Column("id", "string", is_key=True), Column("n", "int")),
)
USERS = Relation("users", RelationKind.TABLE, "users", (Column("user", "string", is_key=True),))
ENRICHED = Relation("enriched", RelationKind.STREAM, "enriched", (Column("n", "int"),))
TOTALS = Relation("totals", RelationKind.TABLE, "totals", (Column("id", "string", is_key=True),))


def _do(catalog: Catalog, command: CatalogCommand) -> CatalogDecision:
    decision = catalog.decide(command, 1_000)
    for key, value in decision.records:
        catalog.replay(key, value)
    return decision


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    _do(made, Declare(ORDERS, "CREATE STREAM Orders ..."))
    _do(made, Declare(USERS, "CREATE TABLE users ..."))
    _do(made, CreateAsCommand(ENRICHED, "CREATE STREAM enriched AS ...", ("orders", "users")))
    _do(made, CreateAsCommand(TOTALS, "CREATE TABLE totals AS ...", ("ORDERS",), {"a": "b"}))
    return made


def test_what_was_declared_is_found_without_case_and_keeps_its_spelling(catalog: Catalog) -> None:
    found = catalog.snapshot().find("oRDERS")
    assert found == ORDERS
    assert [each.name for each in catalog.snapshot().relations(RelationKind.TABLE)] == [
        "totals",
        "users",
    ]


def test_deciding_changes_nothing(catalog: Catalog) -> None:
    before = catalog.snapshot()
    catalog.decide(DropCommand(RelationKind.TABLE, "totals"), 0)
    catalog.decide(TerminateCommand(), 0)
    catalog.decide(InsertSelectCommand("enriched", "INSERT ...", ("orders",)), 0)
    assert catalog.snapshot() == before


def test_a_query_is_named_by_what_made_it_and_its_number(catalog: Catalog) -> None:
    decision = _do(catalog, InsertSelectCommand("Enriched", "INSERT ...", ("orders",)))
    assert list(catalog.snapshot().queries) == [
        "CSAS_ENRICHED_1",
        "CTAS_TOTALS_2",
        "INSERT_ENRICHED_3",
    ]
    query = catalog.snapshot().queries["INSERT_ENRICHED_3"]
    assert decision.after == (StartQuery(query),)
    assert catalog.snapshot().queries["CTAS_TOTALS_2"].settings == {"a": "b"}


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_topic_is_created_only_if_its_size_is_said(partitions: int | None) -> None:
    relation = replace(ORDERS, partitions=partitions)
    decision = Catalog().decide(Declare(relation, ""), 0)
    assert decision.before == (EnsureTopic(relation, may_create=partitions is not None),)
    decision = Catalog().decide(CreateAsCommand(relation, "", ()), 0)
    assert decision.before == (EnsureTopic(relation, may_create=True),)


def test_a_number_is_not_used_again(catalog: Catalog) -> None:
    _do(catalog, DropCommand(RelationKind.TABLE, "totals"))
    _do(catalog, CreateAsCommand(TOTALS, "CREATE ...", ("orders",)))
    assert "CTAS_TOTALS_3" in catalog.snapshot().queries


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            Declare(TOTALS, ""),
            "table totals is there already: choose another name, or DROP TABLE totals first",
        ),
        (
            # A name is one for streams and tables.
            Declare(Relation("TOTALS", RelationKind.STREAM, "t", ()), "", if_not_exists=True),
            "table totals is there already: choose another name, or DROP TABLE totals first",
        ),
        (
            CreateAsCommand(ENRICHED, "", ()),
            (
                "stream enriched is there already: choose another name, or "
                "DROP STREAM enriched first"
            ),
        ),
        (
            DropCommand(RelationKind.STREAM, "orders"),
            (
                "Orders is in use, CSAS_ENRICHED_1 reads it, CTAS_TOTALS_2 reads it: "
                "TERMINATE CSAS_ENRICHED_1; TERMINATE CTAS_TOTALS_2 first"
            ),
        ),
        (DropCommand(RelationKind.STREAM, "totals"), "totals is a table: use DROP TABLE totals"),
        (
            DropCommand(RelationKind.STREAM, "order"),
            "there is no stream or table order: did you mean Orders?",
        ),
        (
            InsertSelectCommand("totals", "", ()),
            (
                "totals is a table, and INSERT INTO ... SELECT writes to streams: "
                "use CREATE TABLE ... AS SELECT"
            ),
        ),
        (InsertSelectCommand("xyz", "", ()), "there is no stream or table xyz"),
        (
            TerminateCommand("CTAS_TOTAL_2"),
            "there is no query CTAS_TOTAL_2: did you mean CTAS_TOTALS_2?",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    catalog: Catalog, command: CatalogCommand, message: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.decide(command, 0)
    assert str(caught.value) == message


def test_a_relation_that_is_there_is_left_alone_if_that_is_wanted(catalog: Catalog) -> None:
    for command in (
        Declare(ORDERS, "", if_not_exists=True),
        CreateAsCommand(TOTALS, "", ("orders",), if_not_exists=True),
        DropCommand(RelationKind.STREAM, "nothing", if_exists=True),
    ):
        decision = catalog.decide(command, 0)
        assert (decision.records, decision.before, decision.after) == ((), (), ())


def test_drop_takes_the_query_that_made_it_along_and_its_checkpoint(catalog: Catalog) -> None:
    made = catalog.snapshot().queries
    decision = _do(catalog, DropCommand(RelationKind.TABLE, "totals", delete_topic=True))
    assert decision.message == (
        "Table totals dropped, with query CTAS_TOTALS_2; topic totals deleted"
    )
    # A topic that is still written to would come back.
    assert decision.after == (
        StopQuery("CTAS_TOTALS_2"),
        DeleteCheckpoint(made["CTAS_TOTALS_2"]),
        DeleteTopic("totals"),
    )
    assert catalog.snapshot().find("totals") is None
    assert list(catalog.snapshot().queries) == ["CSAS_ENRICHED_1"]


def test_drop_forgets_how_far_dead_letters_have_come(catalog: Catalog) -> None:
    kept = Relation("kept", RelationKind.STREAM, "kept", (), on_error="dead-letter")
    _do(catalog, Declare(kept, ""))
    definition = catalog.snapshot().definitions["kept"]
    decision = _do(catalog, DropCommand(RelationKind.STREAM, "kept"))
    assert decision.after == (DeleteLetters(definition),)


def test_drop_is_refused_while_another_query_inserts(catalog: Catalog) -> None:
    _do(catalog, InsertSelectCommand("enriched", "INSERT ...", ("orders",)))
    with pytest.raises(CatalogError, match="INSERT_ENRICHED_3 writes it: TERMINATE INSERT"):
        catalog.decide(DropCommand(RelationKind.STREAM, "enriched"), 0)
    _do(catalog, TerminateCommand("INSERT_ENRICHED_3"))
    made = catalog.snapshot().queries
    decision = _do(catalog, DropCommand(RelationKind.STREAM, "enriched"))
    assert decision.after == (
        StopQuery("CSAS_ENRICHED_1"),
        DeleteCheckpoint(made["CSAS_ENRICHED_1"]),
        DeleteCheckpoint(made["INSERT_ENRICHED_3"]),
    )


def test_a_topic_that_others_read_is_not_deleted(catalog: Catalog) -> None:
    _do(catalog, Declare(Relation("again", RelationKind.STREAM, "totals", ()), ""))
    with pytest.raises(CatalogError) as caught:
        catalog.decide(DropCommand(RelationKind.TABLE, "totals", delete_topic=True), 0)
    assert str(caught.value) == (
        "topic totals is also read by again: drop it first, or leave out DELETE TOPIC"
    )
    _do(catalog, DropCommand(RelationKind.TABLE, "totals"))


def test_a_terminated_query_stays(catalog: Catalog) -> None:
    decision = _do(catalog, TerminateCommand())
    assert decision.message == (
        "Queries CSAS_ENRICHED_1, CTAS_TOTALS_2 terminated; checkpoints are kept"
    )
    assert decision.after == (StopQuery("CSAS_ENRICHED_1"), StopQuery("CTAS_TOTALS_2"))
    states = {each.desired for each in catalog.snapshot().queries.values()}
    assert states == {Desired.TERMINATED}
    with pytest.raises(CatalogError, match="query CTAS_TOTALS_2 is terminated already"):
        catalog.decide(TerminateCommand("CTAS_TOTALS_2"), 0)
    assert catalog.decide(TerminateCommand(), 0) == CatalogDecision("No query is running")


def test_a_paused_query_goes_on_when_it_is_resumed(catalog: Catalog) -> None:
    decision = _do(catalog, PauseCommand("ctas_totals_2"))
    assert decision.message == ("Query CTAS_TOTALS_2 paused; RESUME goes on from the checkpoint")
    assert decision.after == (StopQuery("CTAS_TOTALS_2"),)
    with pytest.raises(CatalogError, match="query CTAS_TOTALS_2 is paused already"):
        catalog.decide(PauseCommand("CTAS_TOTALS_2"), 0)
    # It is to go on: what it reads stays, and its own statement leaves it as it is.
    with pytest.raises(CatalogError, match="CTAS_TOTALS_2 reads it"):
        catalog.decide(DropCommand(RelationKind.STREAM, "orders"), 0)
    same = CreateAsCommand(TOTALS, "CREATE TABLE totals AS ...", ("orders",), if_not_exists=True)
    assert catalog.decide(same, 0) == CatalogDecision("Table totals is there already")
    assert [each.id for each in catalog.snapshot().queries.values() if each.is_running] == [
        "CSAS_ENRICHED_1"
    ]
    decision = _do(catalog, ResumeCommand("CTAS_TOTALS_2"))
    assert decision.message == "Query CTAS_TOTALS_2 goes on from its checkpoint"
    assert decision.after == (StartQuery(catalog.snapshot().queries["CTAS_TOTALS_2"]),)
    with pytest.raises(CatalogError, match="query CTAS_TOTALS_2 is not paused"):
        catalog.decide(ResumeCommand("CTAS_TOTALS_2"), 0)


def test_all_that_run_are_paused_and_all_that_are_paused_are_resumed(catalog: Catalog) -> None:
    _do(catalog, TerminateCommand("CSAS_ENRICHED_1"))
    assert _do(catalog, PauseCommand()).after == (StopQuery("CTAS_TOTALS_2"),)
    assert catalog.decide(PauseCommand(), 0) == CatalogDecision("No query is running")
    with pytest.raises(CatalogError, match="query CSAS_ENRICHED_1 is terminated already"):
        catalog.decide(PauseCommand("CSAS_ENRICHED_1"), 0)
    # A terminated one has ended on purpose: it goes on only by its name.
    decision = _do(catalog, ResumeCommand())
    assert [each.query.id for each in decision.after if isinstance(each, StartQuery)] == [
        "CTAS_TOTALS_2"
    ]
    assert catalog.decide(ResumeCommand(), 0) == CatalogDecision("No query is paused")
    _do(catalog, ResumeCommand("CSAS_ENRICHED_1"))
    assert all(each.is_running for each in catalog.snapshot().queries.values())
    # A paused one is stopped already.
    _do(catalog, PauseCommand("CSAS_ENRICHED_1"))
    assert _do(catalog, TerminateCommand()).after == (StopQuery("CTAS_TOTALS_2"),)


def test_what_cannot_go_on_says_why(catalog: Catalog) -> None:
    insert = InsertSelectCommand("enriched", "INSERT INTO enriched SELECT 1", ("users",))
    _do(catalog, insert)
    _do(catalog, PauseCommand("INSERT_ENRICHED_3"))
    with pytest.raises(CatalogError, match="is this statement, and paused: RESUME INSERT_ENRICH"):
        catalog.decide(insert, 0)
    with pytest.raises(CatalogError, match="enriched is in use, INSERT_ENRICHED_3 writes it"):
        catalog.decide(DropCommand(RelationKind.STREAM, "enriched"), 0)
    _do(catalog, TerminateCommand())
    _do(catalog, DropCommand(RelationKind.TABLE, "users"))
    with pytest.raises(CatalogError, match="INSERT_ENRICHED_3 reads users, which is not there any"):
        catalog.decide(ResumeCommand("INSERT_ENRICHED_3"), 0)


def test_the_same_statement_has_a_terminated_query_go_on(catalog: Catalog) -> None:
    _do(catalog, TerminateCommand())
    same = CreateAsCommand(TOTALS, "CREATE TABLE IF NOT  EXISTS totals\nAS ...", ("orders",))
    with pytest.raises(CatalogError, match="totals is there already"):
        catalog.decide(same, 0)
    decision = _do(catalog, replace(same, if_not_exists=True))
    assert decision.message == "Query CTAS_TOTALS_2 goes on from its checkpoint"
    query = catalog.snapshot().queries["CTAS_TOTALS_2"]
    assert decision.after == (StartQuery(query),)
    assert query.is_running
    # It runs: there is nothing more to be done.
    assert catalog.decide(replace(same, if_not_exists=True), 0).records == ()

    other = CreateAsCommand(ENRICHED, "CREATE STREAM enriched AS other", (), if_not_exists=True)
    assert catalog.decide(other, 0).records == ()


def test_the_same_insert_goes_on_and_another_is_another(catalog: Catalog) -> None:
    insert = InsertSelectCommand("enriched", "INSERT INTO enriched SELECT 1", ("orders",))
    _do(catalog, insert)
    _do(catalog, TerminateCommand("INSERT_ENRICHED_3"))
    _do(catalog, insert)
    assert catalog.snapshot().queries["INSERT_ENRICHED_3"].is_running
    assert "INSERT_ENRICHED_4" not in catalog.snapshot().queries
    # ksqlDB, too, has two of one kind run at once.
    _do(catalog, insert)
    assert catalog.snapshot().queries["INSERT_ENRICHED_4"].is_running


def test_a_record_of_a_newer_version_is_not_passed_over() -> None:
    with pytest.raises(CatalogError, match="a newer version has written it"):
        Catalog().replay("macro/x", {})
