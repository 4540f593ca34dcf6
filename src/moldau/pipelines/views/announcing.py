"""Who serves views on this machine: a file for each server, in the user's own folder.

They listen on loopback, so whoever can ask one is here, too. A file that a killed process has left
is taken away by the next who looks; somebody else may have got the port, so who asks by such a file
expects anything.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from moldau.client.admin import Admin


@dataclass(frozen=True, slots=True)
class Announced:
    """A server that has views."""

    address: str
    """As `http://127.0.0.1:8088`."""
    cluster: str
    """The id of the cluster whose topics it follows."""
    host: str
    """A user's folder may be seen by several machines."""
    pid: int


def announcement_folder() -> Path:
    """Return where the files are."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "moldau" / "views"


@contextmanager
def announced(address: str, cluster: str) -> Iterator[None]:
    """Have a server of this process be found, unless the folder cannot be written to."""
    told = Announced(address, cluster, socket.gethostname(), os.getpid())
    file = announcement_folder() / f"{uuid4().hex}.json"
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(told)))
        new.replace(file)  # whoever looks sees all of it
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def find_announced() -> list[Announced]:
    """Return the servers of this machine, the latest first."""
    found: list[tuple[float, Announced]] = []
    for file in announcement_folder().glob("*.json"):
        with suppress(OSError, ValueError, TypeError):
            each = Announced(**json.loads(file.read_text()))
            if each.host != socket.gethostname():
                continue
            if _is_there(each.pid):
                found.append((file.stat().st_mtime, each))
            else:
                file.unlink(missing_ok=True)
    return [each for _, each in sorted(found, key=lambda it: it[0], reverse=True)]


def find_addresses(config: Mapping[str, object]) -> list[str]:
    """Return where views of a cluster are served; nobody asks the cluster who it is in vain."""
    found = find_announced()
    if not found:
        return []
    with Admin(config=dict(config)) as admin:
        cluster = admin.describe_cluster().cluster_id
    return [each.address for each in found if each.cluster == cluster]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It is somebody else's, and it is there.
    return True
