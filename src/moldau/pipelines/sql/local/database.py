"""DuckDB in this process, for one question: it has what it is given, and reaches nothing else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from moldau.pipelines.sql.asking import Asker, CancelledError
from moldau.pipelines.sql.local.refusals import GoesToSpark

_LOCKED: Final = {
    # A question must not read files, the network or this process's variables.
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


@contextmanager
def open_database(
    memory_bytes_max: int, asker: Asker | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an empty database whose settings cannot be changed any more.

    What it computes ends if the asker goes: then it is a `CancelledError`.
    What fails in it is what Spark would refuse, too, or what it does otherwise: it goes there.
    """
    limits: dict[str, str | int] = {
        "memory_limit": f"{memory_bytes_max}B",
        "threads": os.cpu_count() or 1,
    }
    connection = duckdb.connect(":memory:", config={**_LOCKED, **limits})
    try:
        # Casts of texts without a zone look at it; it is Spark's session's.
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        with (asker or Asker()).interrupting(connection.interrupt):
            yield connection
    except duckdb.InterruptException:
        raise CancelledError from None
    except duckdb.OutOfMemoryException:
        raise GoesToSpark(
            f"large: it needs more than {memory_bytes_max >> 20} MB of memory here"
        ) from None
    except duckdb.Error as error:
        words = str(error).splitlines()[0]
        raise GoesToSpark(f"it does not work out here: {words}") from error
    finally:
        connection.close()
