"""Where an app's queries keep how far they have come, and whose a checkpoint is."""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.declared import Query

FOLDER: Final = "data/pipelines"
OWNER_FILE: Final = "moldau.json"
STARTING_FILE: Final = "starting.json"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_NAME: Final = re.compile(r"[A-Za-z0-9._@-]+")


@dataclass(frozen=True, slots=True)
class CheckpointOwner:
    """The query that a checkpoint belongs to, as it was when the checkpoint was made."""

    app: str
    query: str
    topic: str
    emit: str
    reads: tuple[str, ...]
    state: tuple[str, ...]


class Checkpoints:
    """The folders of one app: BASE/APP/QUERY, where BASE may be a URI that a cluster sees."""

    def __init__(self, app_name: str, base: str | None = None) -> None:
        self.app_name = app_name
        self.base = (base or FOLDER).rstrip("/")
        self.is_uri = bool(_URI.match(self.base))
        self.is_local = not self.is_uri or self.base.startswith("file:")
        """Whether it is among this machine's files."""

    def of(self, query_name: str) -> str:
        """Return a query's folder, as Spark is told."""
        if self.is_uri:
            return f"{self.base}/{self.app_name}/{query_name}"
        # A relative name means another place to a server of Spark Connect.
        return str(self._path(query_name).absolute())

    @property
    def local_folder(self) -> Path:
        """Where what belongs to a run is kept on this machine, whatever is elsewhere."""
        base = re.sub("^file:/+", "/", self.base) if self.is_local else FOLDER
        return Path(base) / self.app_name

    def _path(self, query_name: str) -> Path:
        return self.local_folder / query_name

    # Whose it is.

    def claim(self, query: Query) -> bool:
        """Note whose checkpoint it is, and return whether it is new.

        One that the query cannot go on from is refused. Of a checkpoint elsewhere, the note is on
        this machine.
        """
        now = CheckpointOwner(
            self.app_name,
            query.name,
            query.topic,
            query.emit,
            query.plan.topics,
            query.plan.state,
        )
        path = self._path(query.name) / OWNER_FILE
        has_begun = not self.is_local or any((path.parent / "offsets").glob("[0-9]*"))
        if not (path.exists() and has_begun):
            if has_begun and self.is_local:
                raise PipelineError(
                    f"query {query.name}: {path.parent} is the checkpoint of something else; "
                    "choose another folder with checkpoints"
                )
            # Spark begins only in an empty folder: who was killed while writing the first offsets
            # has left a part of a file there, and would never start again.
            shutil.rmtree(path.parent / "offsets", ignore_errors=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(now), indent=2))
            return True
        before = read_owner(path)
        if before != now:
            raise PipelineError(
                f"query {query.name} {describe_difference(before, now)}, which its checkpoint "
                f"cannot take; undo that, or run moldau pipeline reset {self.app_name} "
                f"--query {query.name}"
            )
        return False

    def release(self, query_name: str) -> None:
        """Take back a claim: the query has not begun."""
        (self._path(query_name) / OWNER_FILE).unlink(missing_ok=True)

    def queries(self) -> list[str]:
        """Return the queries that have checkpoints here; those of backfills are none of the app's.

        Of a checkpoint elsewhere it is known whose it is.
        """
        found = self.local_folder.glob(f"*/{OWNER_FILE}")
        return sorted(path.parent.name for path in found if "@" not in path.parent.name)

    # Where to begin.

    def starting(self) -> str | None:
        """Return where new queries begin after a reset: earliest, latest, or milliseconds.

        It holds for all sources: a query that has a checkpoint does not ask where to begin.
        """
        places = set(self._read_starting().values())
        if len(places) > 1:
            raise PipelineError(
                f"app {self.app_name}: queries were reset to {' and '.join(sorted(places))}, and "
                f"share sources; run moldau pipeline reset {self.app_name} to one of them"
            )
        return next(iter(places), None)

    def reset(self, query_name: str, to: str) -> None:
        """Forget how far a query has come; it begins at earliest, latest, or milliseconds."""
        self.delete(query_name)
        self._write_starting(self._read_starting() | {query_name: to})

    def delete(self, query_name: str) -> None:
        """Delete a query's checkpoint, with its state."""
        if not self.is_local:
            raise PipelineError(
                f"{self.of(query_name)} is not on this machine: delete it there, then "
                f"{self._path(query_name)}"
            )
        shutil.rmtree(self._path(query_name), ignore_errors=True)

    def note_started(self, query_name: str) -> None:
        """Forget where a query was to begin: it has a checkpoint now."""
        starting = self._read_starting()
        if starting.pop(query_name, None) is not None:
            self._write_starting(starting)

    def _read_starting(self) -> dict[str, str]:
        path = self.local_folder / STARTING_FILE
        return json.loads(path.read_text()) if path.exists() else {}

    def _write_starting(self, starting: dict[str, str]) -> None:
        self.local_folder.mkdir(parents=True, exist_ok=True)
        (self.local_folder / STARTING_FILE).write_text(json.dumps(starting))


def check_name(what: str, name: str) -> str:
    """Refuse a name that is no folder's and no topic's."""
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise OptionError(f"{what}={name}: letters, digits, '.', '_' and '-' make a name")
    return name


def read_owner(path: Path) -> CheckpointOwner:
    """Read whose checkpoint it is."""
    try:
        found = json.loads(path.read_text())
        lists = {name: tuple(found[name]) for name in ("reads", "state")}
        return CheckpointOwner(**{**found, **lists})
    except (ValueError, TypeError, KeyError):
        raise PipelineError(f"{path} cannot be read: delete the folder to begin anew") from None


def describe_difference(before: CheckpointOwner, now: CheckpointOwner) -> str:
    """Return in a few words what has changed first."""
    names = {
        "app": "belongs to app {0}, not {1}",
        "query": "is the checkpoint of query {0}, not {1}",
        "topic": "wrote to {0}, and writes to {1} now",
        "emit": "emitted {0}, and emits {1} now",
        "reads": "read {0}, and reads {1} now",
        "state": "kept state of {0}, and keeps that of {1} now",
    }
    for name, words in names.items():
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            return words.format(_shown(old), _shown(new))
    return "has not changed"


def _shown(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else " and ".join(value) or "nothing"
