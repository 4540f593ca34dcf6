"""Format `moldau`: topics for Spark, to read and to write, in batches and streams."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from moldau.pipelines.spark_version import check_pyspark


class MoldauDataSource(DataSource):
    """A topic's records as rows, with the names and options of Spark's Kafka connector."""

    # Spark makes one for every plan, in a process of its own: each imports what it needs.

    def __init__(self, options: dict[str, str]) -> None:
        # Not at import: Spark imports this to learn the names of all formats, and an error there
        # would take the others with it.
        check_pyspark()
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return what users write in `format`."""
        return "moldau"

    def schema(self) -> StructType:
        """Return the columns to read: they depend on the options."""
        from moldau.pipelines.connector.columns import source_schema  # noqa: PLC0415

        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a range of offsets once."""
        from moldau.pipelines.connector.batch_reader import BatchReader  # noqa: PLC0415
        from moldau.pipelines.connector.columns import check_schema  # noqa: PLC0415

        check_schema(schema, self.options)
        return BatchReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return what reads on and on."""
        from moldau.pipelines.connector.columns import check_schema  # noqa: PLC0415
        from moldau.pipelines.connector.stream_reader import StreamReader  # noqa: PLC0415

        check_schema(schema, self.options)
        return StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Return what writes all rows, or none."""
        from moldau.pipelines.connector.sink.batch_writer import BatchWriter  # noqa: PLC0415

        return BatchWriter(self.options, schema, is_overwriting=overwrite)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002, FBT001
    ) -> DataSourceStreamWriter:
        """Return what writes each batch of a stream."""
        from moldau.pipelines.connector.sink.stream_writer import StreamWriter  # noqa: PLC0415

        return StreamWriter(self.options, schema)
