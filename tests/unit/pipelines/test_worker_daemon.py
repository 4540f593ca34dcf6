"""Every worker of Spark's that deals with the connector is forked with it imported."""

from importlib.util import find_spec
from pathlib import Path

import pyspark.sql.worker

from moldau.pipelines.worker_daemon import PRELOADED


def test_spark_has_these_workers_and_no_others_that_need_the_connector() -> None:
    folder = Path(pyspark.sql.worker.__file__).parent
    of_sources = {
        f"pyspark.sql.worker.{path.stem}"
        for path in folder.glob("*.py")
        if "data_source" in path.stem or "sink" in path.stem
    }
    # Filters are pushed to sources that ask for it, and ours does not.
    of_sources.discard("pyspark.sql.worker.data_source_pushdown_filters")
    assert PRELOADED.keys() == {"pyspark.worker", *of_sources}


def test_what_is_imported_is_there() -> None:
    modules = {each for modules in PRELOADED.values() for each in modules}
    assert [each for each in sorted(modules) if find_spec(each) is None] == []
