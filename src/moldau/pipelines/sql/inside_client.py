"""A service that is asked by the process that has it: as a server is, without a socket."""

import queue
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, cast

from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.executing import StatementFailure, execute_text
from moldau.pipelines.sql.language.statements import Statement
from moldau.pipelines.sql.plain_values import plain
from moldau.pipelines.sql.service import Service
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.told_answers import Telling, tell_note, tell_progress
from moldau.pipelines.views.client import ServerRefusedError

WAITING_MAX: Final = 8
"""Of a reader that is slow; then its query waits."""
LOOK_SECONDS: Final = 0.2
END_SECONDS_MAX: Final = 1.0


class InsideClient:
    """Has statements executed in a thread, so that the shell can be interrupted meanwhile."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def queries(self) -> int:
        """How many queries are meant to run."""
        return sum(each.is_running for each in self._service.snapshot.queries.values())

    def execute(
        self, sql: str | Sequence[Statement], settings: Mapping[str, str] | None = None
    ) -> Generator[Mapping[str, Any]]:
        """Yield answers as they come; a caller that closes the iterator cancels what is running.

        `ServerRefusedError` when a statement fails; those before it are done.
        """
        session = Session.of(settings or {})
        told: queue.Queue[Sequence[Telling] | StatementFailure | None] = queue.Queue(WAITING_MAX)
        asker = Asker(
            lambda done, total: put([tell_progress(done, total)]),
            lambda text: put([tell_note(text)]),
        )

        def put(piece: Sequence[Telling] | StatementFailure | None) -> None:
            while not asker.is_cancelled:
                try:
                    told.put(piece, timeout=LOOK_SECONDS)
                except queue.Full:
                    continue
                return

        def work() -> None:
            executed = execute_text(self._service, sql, session, asker)
            try:
                for piece in executed:
                    put(piece)
                    if asker.is_cancelled:
                        return
            finally:
                executed.close()
                put(None)

        thread = threading.Thread(target=work, name="moldau-sql-inside", daemon=True)
        thread.start()
        try:
            while (piece := told.get()) is not None:
                if isinstance(piece, StatementFailure):
                    raise ServerRefusedError(cast("Mapping[str, Any]", piece.value["error"]))
                for each in piece:
                    yield cast("Mapping[str, Any]", plain(each))
        finally:
            asker.cancel()
            # A statement that does not heed its cancellation is left behind.
            thread.join(END_SECONDS_MAX)
