"""What stops an exactly-once sink, each with the way out."""

from moldau.pipelines.errors import PipelineError, RetriableError


class SinkError(PipelineError):
    """A batch was not written, or not as it should be."""


class FencedRunError(SinkError):
    """Another run of the same query has taken over."""


class OldCheckpointError(SinkError):
    """A batch comes again that was followed by others: the checkpoint is older than the output."""


class RepeatedWriteError(SinkError):
    """Two writes of one batch would count as one."""


class UndecidedBatchError(SinkError, RetriableError):
    """Nothing of the batch is visible: it is written again when the query starts again."""


class LostTransactionError(SinkError):
    """A batch was decided, and a part of it is gone."""


class LedgerTakenError(SinkError, RetriableError):
    """Another process has opened the ledger meanwhile; nothing was appended, or it will be seen."""
