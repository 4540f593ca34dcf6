"""What Spark's JVM and its Python workers print, of which a user is shown what is meant for them.

Traces of workers, Java's warnings about itself and Python's warnings in workers all end up in the
standard error of one process. An error that matters is in an exception, too, or is logged: by the
layout that `log4j2.properties` gives to a line.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from moldau.pipelines.errors import PipelineError

LOGGED: Final = b"spark: "
"""How a line begins that Spark has logged for its user."""
LINES_KEPT_MAX: Final = 20
"""Of those that are not shown: the last ones say why a JVM does not start."""


class JvmOutput:
    """Reads what a process prints to the end, in a thread; shows what is logged."""

    def __init__(self, show: Callable[[bytes], None]) -> None:
        reading, self.writing = os.pipe()
        self._reading = os.fdopen(reading, "rb")
        self._show = show
        self._kept: deque[bytes] = deque(maxlen=LINES_KEPT_MAX)
        self._thread = threading.Thread(target=self._read, name="moldau-jvm-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._reading:
            # It must be read whatever it is: a JVM that cannot print stands still.
            for line in self._reading:
                if line.startswith(LOGGED):
                    self._show(line)
                else:
                    self._kept.append(line)

    def close_writing(self) -> None:
        """Leave the writing to the process that has it."""
        os.close(self.writing)

    def last_words(self) -> str:
        """Return the end of what was printed by a process that has ended."""
        self._thread.join()
        return " ".join(b"".join(self._kept).decode(errors="replace").split())


def start_quietly(conf: SparkConf) -> None:
    """Start a JVM and Spark's context in it, for a session to find."""
    output = JvmOutput(_to_stderr)
    launch: Callable[..., Any] = launch_gateway
    try:
        gateway = launch(conf, {"stderr": output.writing})
    except PySparkRuntimeError as error:
        output.close_writing()
        raise PipelineError(f"Spark does not start: {output.last_words() or error}") from error
    except BaseException:
        output.close_writing()
        raise
    output.close_writing()
    SparkContext(conf=conf, gateway=gateway)


def _to_stderr(line: bytes) -> None:
    # By whatever stands for it now, as a test's or a notebook's.
    sys.stderr.write(line.decode(errors="replace"))
    sys.stderr.flush()
