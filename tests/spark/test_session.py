"""The session that pipelines start: on what there is, quiet, and one per process."""

import pytest
from pyspark.sql import SparkSession

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.session import get_session


def test_the_active_session_is_used(spark: SparkSession) -> None:
    assert get_session("another") is spark
    assert get_session("another", "local[2]") is spark


def test_another_master_than_the_active_one_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match=r"master=local\[7\]: there is .* on local\[2\]; stop"):
        get_session("another", "local[7]")


def test_an_error_is_said_once_by_the_exception(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("select 1 div (id - id) from range(3)").collect()
    assert capfd.readouterr().err == ""
