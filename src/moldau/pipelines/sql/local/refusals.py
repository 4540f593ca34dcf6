"""What this engine leaves to Spark, and what nobody can answer."""

from moldau.pipelines.errors import PipelineError


class GoesToSpark(PipelineError):  # noqa: N818
    """A question that is Spark's: this engine would not give the same answer, or it is large."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class QueryError(PipelineError):
    """A question that has no answer in Spark either, and why."""


class NoColumnError(QueryError):
    """A column, or a field of one, that is not there."""
