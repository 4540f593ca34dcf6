"""The shell's side of the HTTP API: statements to a server, and its answers as they come."""

import http.client
import json
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any

from moldau.pipelines.views.client import (
    CONNECT_SECONDS_MAX,
    ServerRefusedError,
    ServerUnreachableError,
    ViewClient,
    refusal,
    text_of,
)


class ServerClient(ViewClient):
    """Speaks to one SQL server; each call has a connection of its own."""

    def health(self, seconds_max: float = CONNECT_SECONDS_MAX) -> Mapping[str, Any]:
        """Return what a server tells of itself."""
        return self._get("/health", seconds_max)

    def execute(
        self, sql: str, settings: Mapping[str, str] | None = None
    ) -> Generator[Mapping[str, Any]]:
        """Yield answers as they come; a caller that closes the iterator cancels what is running.

        `ServerRefusedError` when a statement fails; those before it are done.
        """
        body = json.dumps({"sql": sql, "settings": dict(settings or {})})
        headers = {"Content-Type": "application/json"}
        # The first row of a query may be long in coming: only the connection has a deadline.
        with closing(self._connect(CONNECT_SECONDS_MAX)) as connection:
            try:
                if connection.sock is not None:
                    connection.sock.settimeout(None)
                connection.request("POST", "/statements", body, headers)
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise refusal(response)
                for line in response:
                    answer = json.loads(line)
                    if "error" in answer:
                        raise ServerRefusedError(answer["error"])
                    yield answer
            except (OSError, http.client.HTTPException) as error:
                raise ServerUnreachableError(
                    f"the server at {self.address} went away: {text_of(error)}"
                ) from error
