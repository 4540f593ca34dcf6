"""The logs that processes of a world write: into its trace, and errors apart."""

import asyncio
import logging
from typing import NamedTuple

from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.trace import Trace


class LoggedError(NamedTuple):
    """An error that a process has logged."""

    process: str
    """Its name; empty if a thread of it has logged the error."""
    text: str
    error: BaseException | None


class ProcessLogs(logging.Handler):
    """Takes what is logged while a world runs."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self.errors: list[LoggedError] = []
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        loop = asyncio._get_running_loop()  # noqa: SLF001 - None in threads
        process = loop.name if isinstance(loop, SimulatedLoop) else ""
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        self._trace.remark(
            process, f"{record.levelname} {text}" + (f": {error!r}" if error else "")
        )
        if record.levelno >= logging.ERROR:
            self.errors.append(LoggedError(process, text, error))
