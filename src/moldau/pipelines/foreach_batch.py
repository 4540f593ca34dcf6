"""The sink for `foreachBatch`: for update mode, which Spark refuses to Python's sinks."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from moldau.pipelines.connector.options import SERVERS


def writer(
    topic: str | None = None,
    *,
    bootstrap: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `.foreachBatch` that writes each batch to a topic exactly once.

        query.writeStream.outputMode("update").foreachBatch(writer("totals", bootstrap=servers))

    Options are those of the format `moldau`. Whoever writes a batch to several topics calls one
    after the other; two writes to one topic need names, with the option `sink`.
    """
    texts = {name: str(value) for name, value in (options or {}).items()}
    if topic is not None:
        texts["topic"] = topic
    if bootstrap is not None:
        texts[SERVERS] = bootstrap

    def write(rows: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - tasks know it
        rows.write.format("moldau").options(**texts).mode("append").save()

    return write
