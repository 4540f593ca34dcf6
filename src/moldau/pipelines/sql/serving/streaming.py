"""An answer that is sent while it is made: in a thread, for a client that may go at any time."""

import asyncio
from collections.abc import Generator
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import closing
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.executing import StatementFailure, execute_text
from moldau.pipelines.sql.service import Service
from moldau.pipelines.sql.serving.json_lines import line_of, lines_of
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.told_answers import Telling, tell_note, tell_progress

STATEMENTS_MAX: Final = 64
"""How many requests may be executed at once; each has a thread."""
CHUNKS_WAITING_MAX: Final = 8
"""Of a client that reads slowly; then its query waits."""
_HEADERS: Final = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
_NOBODY_TAKES_IT: Final = (anyio.BrokenResourceError, FutureCancelledError)

StreamPiece = bytes | StatementFailure


class Executions:
    """All requests that are being executed."""

    def __init__(self) -> None:
        self._running: set[Asker] = set()
        self.threads = anyio.CapacityLimiter(STATEMENTS_MAX)

    @property
    def is_full(self) -> bool:
        """Whether another one has no place."""
        return len(self._running) >= STATEMENTS_MAX

    def begin(self, asker: Asker) -> None:
        """One more."""
        self._running.add(asker)

    def end(self, asker: Asker) -> None:
        """One is done."""
        self._running.discard(asker)

    def cancel_all(self) -> None:
        """Have all of them end; from any thread."""
        for each in list(self._running):
            each.cancel()


class LinesResponse(Response):
    """Executes statements in a thread of its own, and sends what comes of them."""

    def __init__(
        self, service: Service, sql: str, session: Session, executions: Executions
    ) -> None:
        super().__init__()
        self._service = service
        self._sql = sql
        self._session = session
        self._executions = executions
        self._loop = asyncio.get_running_loop()
        self._asker = Asker(
            lambda done, total: self._tell(tell_progress(done, total)),
            lambda text: self._tell(tell_note(text)),
        )
        self._pieces, self._taken = anyio.create_memory_object_stream[StreamPiece](
            CHUNKS_WAITING_MAX
        )
        executions.begin(self._asker)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send everything; a client that hangs up cancels what runs for it."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._work)
                group.start_soon(self._watch, receive)
                async with self._taken:
                    await self._send(scope, receive, send)
                group.cancel_scope.cancel()
        finally:
            self._executions.end(self._asker)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._asker.cancel()

    async def _work(self) -> None:
        async with self._pieces:
            # It is waited for, whatever happens: a thread cannot be ended from outside.
            await anyio.to_thread.run_sync(self._execute, limiter=self._executions.threads)

    def _execute(self) -> None:
        made = _pieces(self._service, self._sql, self._session, self._asker)
        try:
            with closing(made):
                for piece in made:
                    anyio.from_thread.run(self._pieces.send, piece)
        except _NOBODY_TAKES_IT:
            pass

    def _tell(self, value: Telling) -> None:
        # Notes come from threads that anyio does not know.
        sending = asyncio.run_coroutine_threadsafe(self._pieces.send(line_of(value)), self._loop)
        try:
            sending.result()
        except _NOBODY_TAKES_IT:
            self._asker.cancel()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False
        async for piece in self._taken:
            if isinstance(piece, StatementFailure) and not is_begun:
                status = 500 if piece.is_ours else 400
                await JSONResponse(piece.value, status)(scope, receive, send)
                return
            if not is_begun:
                is_begun = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            body = line_of(piece.value) if isinstance(piece, StatementFailure) else piece
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if not is_begun:  # a text without statements has no answers
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _pieces(service: Service, sql: str, session: Session, asker: Asker) -> Generator[StreamPiece]:
    with closing(execute_text(service, sql, session, asker)) as executed:
        for told in executed:
            if isinstance(told, StatementFailure):
                yield told
            else:
                yield from lines_of(told)
