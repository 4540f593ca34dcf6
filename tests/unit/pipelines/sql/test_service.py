"""Statements, and what the server does and says about them."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.errors import PipelineError, RetriableError
from moldau.pipelines.sql.answers import SettingsChanged, StatementAnswer, StatementMessage
from moldau.pipelines.sql.asking import Asker, CancelledError
from moldau.pipelines.sql.choosing import NobodyAnswersError
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.ports import Result, ResultRow, RunState, RunStatus
from moldau.pipelines.sql.relations import Column
from moldau.pipelines.sql.service import Service
from moldau.pipelines.sql.session import SETTINGS, Session, SessionSettingError
from tests.golden_text import check_golden
from tests.sql_fakes import FakeEngine, Fakes

ORDERS = """CREATE STREAM Orders (id STRING KEY, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', format='json', event_time='at', watermark='10 seconds');"""
USERS = "CREATE TABLE users (user STRING PRIMARY KEY, city STRING) WITH (topic='users');"
ENRICHED = "CREATE STREAM enriched AS SELECT id, amount FROM orders;"
TOTALS = "CREATE TABLE totals AS SELECT id, count(*) AS n FROM orders GROUP BY id;"
NO_ORDER = "there is no stream or table order: did you mean Orders?"


@pytest.fixture
def fakes() -> Fakes:
    made = Fakes()
    made.cluster.records = {"orders": [], "users": [], "__consumer_offsets": []}
    return made


@pytest.fixture
def service(fakes: Fakes) -> Service:
    return fakes.service()


def _execute(service: Service, text: str, session: Session | None = None) -> list[StatementAnswer]:
    return list(_answers(service, text, session or Session()))


def _answers(service: Service, text: str, session: Session) -> Iterator[StatementAnswer]:
    for statement in parse(text):
        for answer in service.execute(statement, session, Asker()):
            yield answer
            if isinstance(answer, SettingsChanged):
                session = Session.of(answer.settings)


def _rows(answer: StatementAnswer) -> list[ResultRow]:
    assert isinstance(answer, Result)
    return [row for batch in answer.batches for row in batch]


def _said(service: Service, text: str) -> str:
    (answer,) = _execute(service, text)
    assert isinstance(answer, StatementMessage | SettingsChanged)
    return answer.text


def test_what_is_created_is_recorded_and_run(fakes: Fakes, service: Service) -> None:
    answers = _execute(service, ORDERS + USERS + ENRICHED + TOTALS)
    assert answers == [
        StatementMessage("Stream Orders created"),
        StatementMessage("Table users created"),
        StatementMessage("Stream enriched created by query CSAS_ENRICHED_1"),
        StatementMessage("Table totals created by query CTAS_TOTALS_2"),
    ]
    assert list(fakes.runner.running) == ["CSAS_ENRICHED_1", "CTAS_TOTALS_2"]
    assert fakes.views.kept == ["totals", "users"]
    assert {"enriched", "totals"} < fakes.cluster.records.keys()
    assert fakes.catalog().snapshot() == service.snapshot


def test_a_server_that_starts_runs_what_is_to_run(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED + TOTALS + "TERMINATE CSAS_ENRICHED_1;")
    fakes.runner.running.clear()
    again = fakes.service()
    assert list(fakes.runner.running) == ["CTAS_TOTALS_2"]
    assert again.snapshot == service.snapshot


def test_a_paused_query_stays_paused_over_a_restart(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED + TOTALS + "PAUSE CSAS_ENRICHED_1;")
    assert list(fakes.runner.running) == ["CTAS_TOTALS_2"]
    fakes.runner.running.clear()
    again = fakes.service()
    assert list(fakes.runner.running) == ["CTAS_TOTALS_2"]
    (shown,) = again.execute(parse("SHOW QUERIES")[0], Session(), Asker())
    assert isinstance(shown, Result)
    assert [row[:2] for row in _rows(shown)] == [
        ("CSAS_ENRICHED_1", "PAUSED"),
        ("CTAS_TOTALS_2", "RUNNING"),
    ]
    assert _said(again, "RESUME ALL;") == "Query CSAS_ENRICHED_1 goes on from its checkpoint"
    assert sorted(fakes.runner.running) == ["CSAS_ENRICHED_1", "CTAS_TOTALS_2"]


def test_replacing_a_query_goes_on_with_another_statement(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED + TOTALS)
    fakes.runner.done.clear()
    wider = (*fakes.runner.columns, Column("extra", "int"))
    fakes.runner.columns = wider
    fakes.now_ms += 1000
    other = "CREATE OR REPLACE STREAM enriched AS SELECT id, n, extra FROM orders WHERE n > 1;"
    assert _said(service, other) == (
        "Stream enriched replaced; query CSAS_ENRICHED_1 goes on from its checkpoint"
    )
    assert fakes.runner.done == ["stop CSAS_ENRICHED_1", "start CSAS_ENRICHED_1"]
    query = service.snapshot.queries["CSAS_ENRICHED_1"]
    # The checkpoint is found by when the query was made.
    assert query.created_ms == fakes.now_ms - 1000
    assert query.statement == other.removesuffix(";")
    found = service.snapshot.find("enriched")
    assert found is not None
    assert found.columns == wider
    # What is not there yet is created.
    assert _said(service, other.replace("enriched", "fresh")) == (
        "Stream fresh created by query CSAS_FRESH_3"
    )
    fakes.runner.running.clear()
    assert fakes.service().snapshot == service.snapshot


def test_replacing_a_declaration_has_its_readers_go_on(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED + TOTALS + "PAUSE CTAS_TOTALS_2;")
    fakes.runner.done.clear()
    wider = ORDERS.replace("CREATE", "CREATE OR REPLACE").replace(
        "at TIMESTAMP)", "at TIMESTAMP, extra INT)"
    )
    assert _said(service, wider) == "Stream Orders replaced"
    assert fakes.runner.done == ["stop CSAS_ENRICHED_1", "start CSAS_ENRICHED_1"]
    found = service.snapshot.find("orders")
    assert found is not None
    assert found.columns[-1] == Column("extra", "int")


def test_what_cannot_be_replaced_is_refused_before_anything_changes(
    fakes: Fakes, service: Service
) -> None:
    _execute(service, ORDERS + ENRICHED + TOTALS + "INSERT INTO enriched SELECT id, n FROM orders;")
    before, done = service.snapshot, list(fakes.runner.done)
    again = "CREATE OR REPLACE STREAM enriched AS SELECT id, n FROM orders"

    def refused(statement: str) -> str:
        with pytest.raises(PipelineError) as caught:
            _execute(service, statement)
        assert service.snapshot == before
        assert fakes.runner.done == done
        return str(caught.value)

    assert refused(again.replace("STREAM", "TABLE")).startswith(
        "OR REPLACE enriched: its kind was stream, and would be table; DROP STREAM enriched first"
    )
    assert "its topic was enriched, and would be" in refused(
        again.replace(" AS", " WITH (topic='elsewhere') AS")
    )
    assert "it is made by query CSAS_ENRICHED_1, and stays that" in refused(
        "CREATE OR REPLACE STREAM enriched (id STRING KEY, n INT)"
    )
    assert "it is declared, and stays that" in refused(
        "CREATE OR REPLACE STREAM orders AS SELECT id, n FROM totals"
    )
    assert "CSAS_ENRICHED_1 read orders, and would read totals" in refused(
        again.replace("orders", "totals")
    )
    fakes.runner.state = ("Aggregate",)
    assert "query CSAS_ENRICHED_1 keeps state, of aggregates or joins" in refused(again)
    fakes.runner.state = ()
    fakes.runner.columns = fakes.runner.columns[:1]
    assert "column n would be missing; further columns come behind" in refused(again)


def test_drop_does_all_in_order(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + TOTALS)
    fakes.runner.done.clear()
    assert _said(service, "DROP TABLE totals DELETE TOPIC;") == (
        "Table totals dropped, with query CTAS_TOTALS_1; topic totals deleted"
    )
    assert fakes.runner.done == ["stop CTAS_TOTALS_1", "delete checkpoint CTAS_TOTALS_1"]
    assert "totals" not in fakes.cluster.records
    assert fakes.views.kept == []


def test_what_could_not_be_done_is_told_and_the_rest_is_done(fakes: Fakes) -> None:
    service = fakes.service()
    fakes.cluster.undeletable = "enriched"
    _execute(service, ORDERS + ENRICHED)
    said = _said(service, "DROP STREAM enriched DELETE TOPIC")
    assert said.endswith("; but topic enriched was not deleted: NOT_CONTROLLER")
    fakes.views.fails = PipelineError("the disk is full")
    assert _said(service, USERS) == "Table users created; but the disk is full"
    assert service.snapshot.find("enriched") is None


def test_what_is_not_recorded_has_not_happened(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS)
    before = service.snapshot
    fakes.log.fails = RetriableError("not written")
    with pytest.raises(RetriableError):
        _execute(service, ENRICHED)
    with pytest.raises(RetriableError):
        _execute(service, "DROP STREAM orders")
    assert service.snapshot == before
    assert fakes.runner.running == {}


def test_a_topic_that_is_missing_is_told(fakes: Fakes, service: Service) -> None:
    with pytest.raises(PipelineError, match="there is no topic nowhere"):
        _execute(service, "CREATE STREAM s (a INT) WITH (topic='nowhere')")
    assert fakes.log.changes == []
    _execute(service, "CREATE STREAM s (a INT) WITH (topic='nowhere', partitions=2)")
    assert "nowhere" in fakes.cluster.records


def test_a_query_that_is_there_is_not_understood_again(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED)
    planned = fakes.runner.planned
    same = ENRICHED.replace("STREAM", "STREAM IF NOT EXISTS")
    assert _said(service, same) == "Stream enriched is there already"
    assert fakes.runner.planned == planned
    _execute(service, "TERMINATE CSAS_ENRICHED_1")
    assert _said(service, same) == "Query CSAS_ENRICHED_1 goes on from its checkpoint"
    assert list(fakes.runner.running) == ["CSAS_ENRICHED_1"]


def test_an_insert_that_cannot_be_run_is_not_recorded(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + ENRICHED)
    before, planned = service.snapshot, fakes.runner.planned
    with pytest.raises(PipelineError, match="there is no stream or table nowhere"):
        _execute(service, "INSERT INTO nowhere SELECT * FROM nothing")
    assert fakes.runner.planned == planned
    with pytest.raises(PipelineError, match="there is no stream or table nothing: declare it"):
        _execute(service, "INSERT INTO enriched SELECT * FROM nothing")
    assert fakes.runner.planned == planned
    assert service.snapshot == before


def test_a_query_keeps_the_settings_of_its_session(service: Service) -> None:
    _execute(service, ORDERS + "SET 'auto.offset.reset'='earliest';" + ENRICHED)
    query = service.snapshot.queries["CSAS_ENRICHED_1"]
    assert query.settings == {"auto.offset.reset": "earliest"}


def test_settings() -> None:
    session = Session().set("AUTO.offset.reset", "Earliest")
    assert session.get("auto.offset.reset") == "earliest"
    assert session.unset("auto.offset.reset") == Session()
    with pytest.raises(SessionSettingError) as caught:
        session.set("auto.ofset.reset", "earliest")
    assert str(caught.value) == (
        "there is no setting auto.ofset.reset: did you mean auto.offset.reset?"
    )
    with pytest.raises(SessionSettingError, match="earliest or latest is allowed"):
        session.set("auto.offset.reset", "middle")
    with pytest.raises(SessionSettingError, match=f"xyz: there are {', '.join(SETTINGS)}"):
        session.unset("xyz")


def test_the_first_engine_that_takes_it_answers(fakes: Fakes) -> None:
    late = FakeEngine("view", "not a key")
    fakes.engines = [
        late,
        FakeEngine("local", "too large", declines_late=True),
        FakeEngine("spark"),
    ]
    service = fakes.service()
    _execute(service, ORDERS)
    (answer,) = _answers(service, "SELECT * FROM orders", Session())
    assert isinstance(answer, Result)
    assert answer.engine == "spark"
    assert _rows(answer) == [(1,), (2,), (3,)]

    (plan,) = _answers(service, "EXPLAIN SELECT * FROM orders", Session())
    assert [line for (line,) in _rows(plan)] == [
        "Engine: spark",
        "Not view: not a key",
        "Not local: too large",
        "Scan orders",
    ]

    with pytest.raises(NobodyAnswersError) as caught:
        _execute(service, "SET 'sql.engine'='local'; SELECT * FROM orders")
    assert str(caught.value) == "nobody can answer this; local: too large"


def test_a_push_query_begins_before_its_first_row(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS)
    (statement,) = parse("SELECT * FROM orders EMIT CHANGES")
    asker = Asker()
    (answer,) = service.execute(statement, Session(), asker)
    assert isinstance(answer, Result)
    assert next(answer.batches) == [(1,)]
    asker.cancel()
    assert list(answer.batches) == []
    assert fakes.engines[0].ended.is_set()


def test_before_the_service_is_ours_questions_are_answered_and_changes_wait(fakes: Fakes) -> None:
    _execute(fakes.service(), ORDERS + ENRICHED)
    fakes.runner.running.clear()
    service = fakes.service(is_open=False)
    (queries,) = _execute(service, "SHOW QUERIES")
    assert [row[1] for row in _rows(queries)] == ["STARTING"]
    assert not service.is_open

    asker = Asker()
    asker.cancel()
    (statement,) = parse("DROP STREAM enriched")
    with pytest.raises(CancelledError):
        list(service.execute(statement, Session(), asker))

    done = threading.Event()
    waiting = threading.Thread(
        target=lambda: (_execute(service, "DROP STREAM enriched"), done.set())
    )
    waiting.start()
    assert service.snapshot.find("enriched") is not None
    service.open(fakes.catalog())
    waiting.join()
    assert done.is_set()
    assert service.snapshot.find("enriched") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DESCRIBE order", NO_ORDER),
        ("INSERT INTO order VALUES ('a')", NO_ORDER),
        ("EXPLAIN CSAS_ENRICH", "there is no query CSAS_ENRICH: did you mean CSAS_ENRICHED_1?"),
        (
            "EXPLAIN INSERT INTO orders VALUES (1)",
            "INSERT is done by the server: there is no plan to explain",
        ),
        (
            "CREATE STREAM x AS SELECT * FROM nothing",
            "there is no stream or table nothing: declare it with CREATE STREAM or CREATE TABLE",
        ),
        (
            "CREATE STREAM x AS SELECT * FROM oders",
            "there is no stream or table oders: did you mean Orders?",
        ),
        (
            "EXPLAIN CREATE STREAM x AS SELECT * FROM undeclared",
            (
                "undeclared is a topic, and no stream or table yet: declare it with CREATE STREAM "
                "or CREATE TABLE"
            ),
        ),
    ],
)
def test_what_is_not_there_is_named(
    fakes: Fakes, service: Service, text: str, message: str
) -> None:
    fakes.cluster.records["undeclared"] = []
    _execute(service, ORDERS + ENRICHED)
    with pytest.raises(PipelineError) as caught:
        _execute(service, text)
    assert str(caught.value) == message


def test_what_show_and_describe_say(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + USERS + ENRICHED + TOTALS)
    insert = "INSERT INTO enriched SELECT id, amount\n  FROM orders;"
    _execute(service, insert + "TERMINATE INSERT_ENRICHED_3;")
    error = "spark: the broker is away; it starts again in 2.0 s"
    fakes.runner.statuses["CTAS_TOTALS_2"] = RunStatus(RunState.WAITING, 12, error, 3, 0)
    script = Path(__file__).with_name("show_and_describe.sql").read_text()
    parts = []
    for statement in parse(script):
        parts.append(f"{statement.text};\n")
        for answer in service.execute(statement, Session(), Asker()):
            assert isinstance(answer, Result)
            parts.append(" | ".join(f"{each.name} {each.type}" for each in answer.columns) + "\n")
            parts += [" | ".join(map(str, row)) + "\n" for row in _rows(answer)]
        parts.append("\n")
    check_golden("sql-show-and-describe", "".join(parts))


def test_what_each_statement_says(service: Service) -> None:
    script = Path(__file__).with_name("statements_and_errors.sql").read_text()
    parts = []
    for statement in parse(script):
        parts.append(f"{' '.join(statement.text.split())};\n")
        try:
            for answer in service.execute(statement, Session(), Asker()):
                parts += [f"  {line}\n" for line in _shown(answer)]
        except PipelineError as error:
            parts.append(f"  error: {error}\n")
    check_golden("sql-statements", "".join(parts))


def _shown(answer: StatementAnswer) -> Iterator[str]:
    if isinstance(answer, Result):
        yield f"{answer.engine}: {', '.join(each.name for each in answer.columns)}"
        yield from (" | ".join(map(str, row)) for row in _rows(answer))
    else:
        yield answer.text


def test_who_owns_nothing_only_answers(fakes: Fakes, service: Service) -> None:
    _execute(service, ORDERS + TOTALS)
    asked = Service(fakes.catalog(), fakes.log, fakes.ports(), is_owner=False)
    (shown,) = _execute(asked, "SHOW QUERIES")
    assert _rows(shown)[0][1] == RunState.RESTING
    with pytest.raises(PipelineError, match="this server owns nothing, and only answers questions"):
        _execute(asked, "DROP TABLE totals")
