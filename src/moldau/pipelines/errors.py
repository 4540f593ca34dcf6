"""What a user of pipelines can mend."""


class PipelineError(Exception):
    """Says in one line what is wrong and how to go on."""


class OptionError(PipelineError, ValueError):
    """An option that does not exist, or a value that it cannot have."""


class RetriableError(PipelineError):
    """What may go well when the query starts again."""


class SessionLostError(RetriableError):
    """The JVM of a Spark session has ended, and all that ran in it."""

    def __init__(self, message: str, jvm_pid: int | None = None) -> None:
        super().__init__(message)
        self.jvm_pid = jvm_pid
        """Its process, if that is known: one loss is noticed by each query that ran there."""
