"""Forks Spark's Python processes with everything imported that they need.

For a session Spark starts a daemon for each kind of worker, a process for each source of a stream,
and workers for plans, tasks and commits. Each of them imports Spark, Arrow and the connector, more
than half a second of one core. A server imports these once. `worker/python`, which Spark takes for
its Python, has the server fork a process and stands in for it.

Spark itself imports nothing before it forks, because libraries may start threads. Those of NumPy
and Arrow wait, and both libraries know how to fork. No random numbers are drawn before a fork.
"""

import gc
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from moldau.pipelines.worker.launch import SIZE_BYTES

SOCKET: Final = "MOLDAU_WORKERS"
"""The variable that tells `worker/python` where the server is."""

PRELOADED: Final = (
    "pyarrow.compute",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "moldau.pipelines.connector.batch_reader",
    "moldau.pipelines.connector.stream_reader",
    "moldau.pipelines.connector.sink.batch_writer",
    "moldau.pipelines.connector.sink.stream_writer",
    "moldau.pipelines.streams.app",
)


class LaunchRequest(NamedTuple):
    """What a process is to run, and with which surroundings."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    streams: Sequence[int]


class _Child(NamedTuple):
    process: int
    end: int
    """A descriptor that is readable when the process has ended."""
    link: socket.socket


# In the driver.


class WorkerServer:
    """The server of a driver's process; it ends with the driver, however that ends."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="moldau-workers-"))
        self.path = str(self._folder / "socket")
        # The order of a set is that of all workers, as where Spark starts them.
        environment = {"PYTHONHASHSEED": "0", **os.environ}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            # Requests wait here until everything is imported.
            listener.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno()), str(self._folder)],
                stdin=subprocess.PIPE,
                env=environment,
                pass_fds=[listener.fileno()],
            )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, as it does when it cannot go on."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it; processes that it has forked go on."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


# In the server.


def main() -> None:
    """Import, then fork a process for each request, until the driver is gone."""
    # The terminal's interrupt is the driver's to handle, as it is for all that Spark starts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [each for each in sys.path[1:] if each not in own]
    for module in PRELOADED:
        import_module(module)
    # What is there stays: a worker's collections need not look at it, nor copy its pages.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        request = _serve(listener)
    if request is None:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    else:
        _become(request, installed)


def _serve(listener: socket.socket) -> LaunchRequest | None:
    """Return a request in the process that is forked for it, None in the server at its end."""
    children: dict[int, _Child] = {}
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(listener, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                return None
            if descriptor == listener.fileno():
                link, _ = listener.accept()
                request = _receive(link)
                if request is None:
                    link.close()
                    continue
                process = os.fork()
                if process == 0:
                    return request
                for stream in request.streams:
                    os.close(stream)
                child = _Child(process, os.pidfd_open(process), link)
                for each in (child.end, link.fileno()):
                    children[each] = child
                    poll.register(each, select.POLLIN)
                _send(link, process)
            elif (child := children[descriptor]).end == descriptor:
                _send(child.link, os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1]))
                for each in (child.end, child.link.fileno()):
                    poll.unregister(each)
                    del children[each]
                child.link.close()
                os.close(child.end)
                break  # the others may be of descriptors that are closed now
            else:
                # The launcher that stands in for it was killed.
                poll.modify(descriptor, 0)
                with suppress(ProcessLookupError):
                    os.kill(child.process, signal.SIGKILL)


def _receive(link: socket.socket) -> LaunchRequest | None:
    """Return a request, None if its launcher was gone first."""
    with suppress(OSError, ValueError, EOFError):
        head, streams, _, _ = socket.recv_fds(link, SIZE_BYTES, 3)
        data = bytearray()
        size = int.from_bytes(head, "little")
        while len(data) < size and (more := link.recv(size - len(data))):
            data += more
        arguments, environment, directory = marshal.loads(data)
        return LaunchRequest(arguments, environment, directory, streams)
    return None


def _send(link: socket.socket, number: int) -> None:
    with suppress(OSError):
        link.sendall(number.to_bytes(SIZE_BYTES, "little", signed=True))


def _become(request: LaunchRequest, installed: Sequence[str]) -> None:
    """Go on as `python -m MODULE ...` would, started with the request's surroundings."""
    for target, stream in enumerate(request.streams):
        os.dup2(stream, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.directory)
    _, module, *arguments = request.arguments
    paths = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [request.directory, *filter(None, paths), *installed]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
