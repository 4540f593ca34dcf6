"""The JVMs that programs of PySpark start."""

import os
import signal
from pathlib import Path


def find_jvm(pid: int) -> int | None:
    """Return the JVM that a process has started; a dead one that is not reaped yet is none."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended meanwhile.
        is_dead = fields["State"].strip().startswith("Z")
        if fields["PPid"].strip() == str(pid) and fields["Name"].strip() == "java" and not is_dead:
            return int(status.parent.name)
    return None


def kill_jvm(pid: int) -> None:
    """End the JVM of a process with -9, as a machine does that is out of memory."""
    jvm = find_jvm(pid)
    assert jvm is not None, f"process {pid} has no JVM"
    os.kill(jvm, signal.SIGKILL)
