"""Where Spark finds the format `moldau` by itself: it looks into packages named `pyspark_*`."""

from moldau.pipelines.connector.data_source import MoldauDataSource as DefaultSource

__all__ = ["DefaultSource"]
