"""Stands in for a Python process of Spark's that the worker server forks.

Runs for every such process, with `-I -S`, and imports next to nothing. It hands over its standard
streams, environment and arguments, passes signals on, and ends as the other process ends.
"""

import _socket
import marshal
import os
import signal
import sys
from array import array
from collections.abc import Callable

SIZE_BYTES = 4


def main() -> None:
    """Have `python ARGUMENTS` run: by the server, or here if there is none."""
    arguments = sys.argv[1:]
    link = _connect(os.environ["MOLDAU_WORKERS"])
    if link is None:
        os.execv(os.environ["MOLDAU_PYTHON"], [os.environ["MOLDAU_PYTHON"], *arguments])
    request = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
    streams = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [0, 1, 2]))]
    link.sendmsg([len(request).to_bytes(SIZE_BYTES, "little")], streams)
    link.sendall(request)
    process = _receive(link)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _passing(process))
    code = _receive(link)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _connect(path: str) -> "_socket.socket | None":
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        link.connect(path)
    except OSError:
        return None
    return link


def _receive(link: "_socket.socket") -> int:
    data = b""
    while len(data) < SIZE_BYTES:
        more = link.recv(SIZE_BYTES - len(data))
        if not more:
            os._exit(1)  # the server is gone, and says no more of it
        data += more
    return int.from_bytes(data, "little", signed=True)


def _passing(process: int) -> Callable[[int, object], None]:
    def handle(number: int, _frame: object) -> None:
        os.kill(process, number)

    return handle


if __name__ == "__main__":
    main()
