"""Lost data: offsets that were to be read, and that the log does not have.

The log's own start and end tell it. Gaps between offsets do not: compaction, transaction markers
and aborted transactions leave them where nothing is lost.
"""

import warnings
from dataclasses import replace
from typing import Final

from moldau.pipelines.connector.planning import OffsetRange
from moldau.pipelines.errors import PipelineError

WAY_OUT: Final = (
    "set failOnDataLoss to false to go on with what is there, or begin anew without the checkpoint "
    "(of an app: moldau pipeline reset)"
)


class DataLossError(PipelineError):
    """Records that were to be read are not there any more."""


class DataLossWarning(UserWarning):
    """Records that were to be read are not there any more, and the read goes on."""


def find_loss(wanted: OffsetRange, log_start: int, log_end: int) -> str | None:
    """Say what of a range is not in a log that has the offsets from `log_start` to `log_end`."""
    what = f"partition {wanted.key}"
    if wanted.end > log_end:
        return (
            f"{what} ends at offset {log_end}, and offsets {wanted.start} to {wanted.end - 1} were "
            f"to be read (was the topic deleted and created anew?)"
        )
    if wanted.start < log_start:
        last = min(log_start, wanted.end) - 1
        return (
            f"{what} has lost offsets {wanted.start} to {last}: it begins at offset {log_start} "
            f"(retention, or records were deleted)"
        )
    return None


def cut(wanted: OffsetRange, log_start: int, log_end: int) -> OffsetRange:
    """Return what of a range is in the log; it may be empty."""
    start = max(wanted.start, log_start)
    return replace(wanted, start=start, end=max(start, min(wanted.end, log_end)))


def report_loss(words: str, *, fails: bool) -> None:
    """Raise what was lost, or warn of it."""
    if fails:
        raise DataLossError(f"{words}; {WAY_OUT}")
    warnings.warn(words, DataLossWarning, stacklevel=2)
