"""A Java machine that stays, and runs the main methods of Apache Kafka's tools one at a time."""

import atexit
import os
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from tools.peers import java_classpath, server_classpath

FRESH: Final = ("kafka-tools-", "kafka_2.13-")
"""Jars of the tools: they keep state in static fields, and are loaded anew for each run."""

COLD: Final = "org.apache.kafka.tools.Verifiable"
"""Tools that end the Java machine themselves begin so."""

OURS: Final = ("ImageOracle", "ProducerVerdicts", "SettingValues")
"""Programs of ours that leave nothing behind: no threads, no metrics."""


class WarmTools:
    """The process of WarmTools.java: started when it is first needed, ended with this one."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._is_busy = threading.Lock()
        atexit.register(self.close)

    def try_run(
        self, name: str, arguments: Sequence[str], *, typed: str, seconds_max: float
    ) -> "subprocess.CompletedProcess[str] | None":
        """Run a class to its end; decline what must not run here, and what would have to wait."""
        jars = _jars_of(name)
        if not jars or not self._is_busy.acquire(blocking=False):
            return None
        try:
            words = (name, os.pathsep.join(jars), typed, *arguments)
            process = self._process = self._running()
            limit = threading.Timer(seconds_max, process.kill)
            limit.start()
            try:
                code, out, err = _ask(process, [word.encode() for word in words])
            except OSError:
                self.close()
                said = f"{name} {arguments} ended the Java machine, or took {seconds_max} s"
                raise AssertionError(said) from None
            finally:
                limit.cancel()
            return subprocess.CompletedProcess(words, code, out.decode(), err.decode())
        finally:
            self._is_busy.release()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None:
            return self._process
        paths = java_classpath("WarmTools").split(os.pathsep)
        kept = os.pathsep.join(path for path in paths if not _is_fresh(path))
        return subprocess.Popen(
            ["java", *self._options, "-cp", kept, "WarmTools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )


def _jars_of(name: str) -> list[str]:
    """Return what is loaded anew for a class; nothing for one that must have its own process."""
    if name in OURS:
        return [f"{java_classpath(name).split(os.pathsep)[-1]}/"]
    if name.startswith(("org.apache.kafka.tools.", "kafka.")) and not name.startswith(COLD):
        return [path for path in server_classpath().split(os.pathsep) if _is_fresh(path)]
    return []


def _is_fresh(path: str) -> bool:
    return Path(path).name.startswith(FRESH)


def _ask(process: "subprocess.Popen[bytes]", words: Sequence[bytes]) -> tuple[int, bytes, bytes]:
    assert process.stdin
    assert process.stdout
    request = b"".join(len(word).to_bytes(4) + word for word in words)
    process.stdin.write(len(words).to_bytes(4) + request)
    process.stdin.flush()
    [code] = struct.unpack(">i", _receive(process.stdout, 4))
    out = _receive(process.stdout, int.from_bytes(_receive(process.stdout, 4)))
    return code, out, _receive(process.stdout, int.from_bytes(_receive(process.stdout, 4)))


def _receive(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionResetError("the Java machine ended")
    return data
