"""A PySpark that is missing or too old is named in one line."""

import sys
from types import SimpleNamespace

import pytest

from moldau import pipelines
from moldau.pipelines.spark_version import check_connect, check_pyspark


def install(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__=version))


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0", "4.10.0.dev1", "5.0.0"])
def test_versions_from_4_2_on_are_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, version)
    check_pyspark()


def test_an_older_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "4.0.1")
    with pytest.raises(ImportError) as caught:
        pipelines.get_session  # noqa: B018
    assert str(caught.value) == (
        "moldau needs PySpark 4.2 or newer: this is 4.0.1; pip install 'moldau[spark]'"
    )


def test_none_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(pipelines.PipelineError, match=r"4\.2 or newer: pip install"):
        pipelines.get_session  # noqa: B018


def test_what_spark_connect_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_connect("sc://localhost")
    for module in ("grpc", "google.rpc"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(pipelines.PipelineError) as caught:
        pipelines.get_session("shop", "sc://localhost:15002")
    assert str(caught.value) == (
        "master=sc://localhost:15002: Spark Connect needs grpcio, googleapis-common-protos: "
        "pip install 'moldau[connect]'"
    )
