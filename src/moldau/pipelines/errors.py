"""What a user of pipelines can mend."""


class PipelineError(Exception):
    """Says in one line what is wrong and how to go on."""


class OptionError(PipelineError, ValueError):
    """An option that does not exist, or a value that it cannot have."""


class RetriableError(PipelineError):
    """What may go well when the query starts again."""


class SessionLostError(RetriableError):
    """The JVM of a Spark session has ended, and all that ran in it."""
