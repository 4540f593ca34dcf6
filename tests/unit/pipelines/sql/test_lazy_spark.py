"""Spark is not imported before it is needed, and where it is missing that is said."""

import subprocess
import sys
from dataclasses import replace

import pytest

from moldau.pipelines.spark_version import SparkVersionError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.catalog.commands import Declare
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, PersistentQuery, Verb
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.lazy_spark import STARTING, LazyEngine, LazyRunner, Once
from moldau.pipelines.sql.ports import DeclinedError, Engine, Runner, RunState
from moldau.pipelines.sql.relations import Relation, RelationKind
from moldau.pipelines.sql.session import Session
from tests.sql_fakes import FakeEngine, FakeRunner

QUERY = PersistentQuery("CSAS_A_1", Verb.CREATE_STREAM, "CREATE ...", "a", (), 0)
(SELECT,) = parse("SELECT 1 FROM a")


def test_nothing_of_spark_is_imported() -> None:
    program = (
        "import sys, moldau.pipelines.sql.assembling, moldau.cli.sql_session;"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_it_is_made_once() -> None:
    made: list[FakeEngine] = []

    def make() -> Engine:
        made.append(FakeEngine("spark"))
        return made[-1]

    engine = LazyEngine(Once(make))
    assert isinstance(SELECT, Select)
    assert made == []
    for _ in range(2):
        assert engine.explain(SELECT, CatalogSnapshot(), Session(), Asker()) == "Scan a"
    assert len(made) == 1


def test_a_server_says_that_spark_starts_for_a_query_that_goes_on() -> None:
    said: list[str] = []
    catalog = Catalog()
    for change in catalog.decide(
        Declare(Relation("a", RelationKind.STREAM, "a", ()), ""), 0
    ).records:
        catalog.replay(*change)
    runner = LazyRunner(Once[Runner](FakeRunner), said.append)
    runner.start(QUERY, catalog.snapshot())
    runner.start(replace(QUERY, id="CSAS_A_2"), catalog.snapshot())
    assert said == [STARTING]


def test_without_spark_an_engine_declines_and_a_query_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert isinstance(SELECT, Select)
    engine = LazyEngine(Once[Engine](FakeEngine))
    with pytest.raises(DeclinedError, match=r"pip install 'moldau\[spark\]'"):
        engine.explain(SELECT, CatalogSnapshot(), Session(), Asker())
    runner = LazyRunner(Once[Runner](FakeRunner))
    runner.start(QUERY, CatalogSnapshot())
    status = runner.status(QUERY.id)
    assert status.state is RunState.FAILED
    assert "PySpark" in str(status.last_error)
    runner.stop(QUERY.id)
    with pytest.raises(SparkVersionError):
        runner.delete_checkpoint(QUERY)
    runner.close()
