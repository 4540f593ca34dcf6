"""Spark is not imported before it is needed, and where it is missing that is said."""

import subprocess
import sys

import pytest

from moldau.pipelines.spark_version import SparkVersionError
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot, PersistentQuery, Verb
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.lazy_spark import LazyEngine, LazyRunner, Once
from moldau.pipelines.sql.ports import DeclinedError, Engine, Runner, RunState
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
    said: list[str] = []

    def make() -> Engine:
        made.append(FakeEngine("spark"))
        return made[-1]

    engine = LazyEngine(Once(make, lambda: said.append("starting")))
    assert isinstance(SELECT, Select)
    assert made == []
    for _ in range(2):
        assert engine.explain(SELECT, CatalogSnapshot(), Session()) == "Scan a"
    assert len(made) == len(said) == 1


def test_without_spark_an_engine_declines_and_a_query_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert isinstance(SELECT, Select)
    engine = LazyEngine(Once[Engine](FakeEngine))
    with pytest.raises(DeclinedError, match=r"pip install 'moldau\[spark\]'"):
        engine.explain(SELECT, CatalogSnapshot(), Session())
    runner = LazyRunner(Once[Runner](FakeRunner))
    runner.start(QUERY, CatalogSnapshot())
    status = runner.status(QUERY.id)
    assert status.state is RunState.FAILED
    assert "PySpark" in str(status.last_error)
    runner.stop(QUERY.id)
    with pytest.raises(SparkVersionError):
        runner.delete_checkpoint(QUERY)
    runner.close()
