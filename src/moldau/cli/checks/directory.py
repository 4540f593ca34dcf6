"""Can a broker use a data directory: is it there, ours, free, large enough, of a known format."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from moldau.cli.checks.finding import Finding, ok, problem, warning
from moldau.cli.dump.rows import METADATA_FOLDER
from moldau.cli.dump.segment import SegmentFile
from moldau.kernel.errors import ProtocolError
from moldau.log.checkpoints import CLEAN_SHUTDOWN
from moldau.log.errors import MalformedFileError
from moldau.log.identity import META_PROPERTIES, MetaProperties, parse_meta_properties
from moldau.metadata.errors import UnknownRecordError
from moldau.metadata.features import LATEST_LEVEL, LEVELS, METADATA_VERSION
from moldau.metadata.record_frame import decode_record
from moldau.protocol.stored.cluster_metadata import FeatureLevelRecord
from moldau.runtime.directory_lock import LOCK_FILE, find_owner
from moldau.runtime.free_space import FreeSpace, Space, Thresholds

GB: Final = 1e9


def check_directory(path: Path, cluster_id: str | None) -> Iterator[Finding]:
    """Look at a data directory; `cluster_id` is that of the cluster that it should be of."""
    if not path.exists():
        parent = next(each for each in path.absolute().parents if each.exists())
        if os.access(parent, os.W_OK):
            yield ok(f"{path} is not there yet: `moldau start --data {path}` makes it")
        else:
            yield problem(
                f"{path} is not there, and {parent} may not be written to",
                f"make it as root, and give it to you: chown {_user()} {path}",
            )
        return
    if not path.is_dir():
        yield problem(f"{path} is a file", "name a directory")
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(
            f"{path} may not be read and written by you ({_user()})",
            f"run as its owner, or: chown -R {_user()} {path}",
        )
        return
    yield ok(f"{path} can be read and written")
    yield _check_lock(path)
    yield _check_space(path)
    yield from _check_content(path, cluster_id)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _check_lock(path: Path) -> Finding:
    try:
        owner = find_owner(path)
    except OSError as error:
        return problem(
            f"{path / LOCK_FILE} cannot be opened ({error.strerror})",
            "run as the directory's owner",
        )
    if owner is None:
        return ok("no broker is running on it")
    return warning(
        f"{path} is in use by {owner}",
        "that is fine if it is your broker; a second one needs a directory of its own",
    )


def _check_space(path: Path) -> Finding:
    usage = shutil.disk_usage(path)
    said = f"{usage.free / GB:.1f} of {usage.total / GB:.1f} GB are free on the volume of {path}"
    space = FreeSpace(Thresholds.of_volume(usage.total), free_bytes=usage.free).space
    if space is Space.RESERVED:
        return problem(
            f"{said}: a broker refuses records there", "free some, or shorten topics' retention.ms"
        )
    if space is Space.LOW:
        return warning(said, "free some, or shorten topics' retention.ms")
    return ok(said)


def _check_content(path: Path, cluster_id: str | None) -> Iterator[Finding]:
    try:
        identity = _identity(path)
    except (MalformedFileError, OSError) as error:
        yield problem(
            f"{path / META_PROPERTIES} cannot be read: {error}",
            "restore it: it says whose the directory is; or choose an empty directory",
        )
        return
    if identity is None:
        names = [each.name for each in path.iterdir() if each.name not in (LOCK_FILE, "lost+found")]
        if names:
            yield problem(
                f"{path} is not empty ({', '.join(sorted(names)[:3])}), and no data directory",
                "choose an empty one, or one that a broker has made",
            )
        else:
            yield ok(f"{path} is empty: the first start makes a new cluster there")
        return
    whose = f"{path} belongs to node {identity.node_id} of cluster {identity.cluster_id}"
    if cluster_id is not None and cluster_id != identity.cluster_id:
        yield problem(
            f"{whose}, and the broker that was asked to cluster {cluster_id}",
            "choose the directory of that cluster, or ask another broker",
        )
    else:
        yield ok(whose)
    yield _check_format(path)
    if not (path / CLEAN_SHUTDOWN).exists() and find_owner(path) is None:
        yield warning(
            f"{path} was not closed in good order",
            "the next start recovers it, and takes longer; nothing is to be done",
        )


def _identity(path: Path) -> MetaProperties | None:
    file = path / META_PROPERTIES
    return parse_meta_properties(str(file), file.read_bytes()) if file.exists() else None


def _check_format(path: Path) -> Finding:
    """Find the newest level of metadata that was written to it."""
    level = 0
    try:
        for file in sorted((path / METADATA_FOLDER).glob("*.[lc][oh]*")):
            if file.suffix in (".log", ".checkpoint"):
                level = max(level, _level_in(file))
    except UnknownRecordError as error:
        return problem(
            f"{path} was written by something newer: {error}", "use a newer version of Moldau"
        )
    except (ProtocolError, OSError) as error:
        return problem(
            f"the cluster's metadata in {path} is damaged: {error}",
            f"look at it with `moldau log {path / METADATA_FOLDER} --verify`; restore it from a"
            " backup",
        )
    if level > LATEST_LEVEL:
        return problem(
            f"{path} has metadata.version {level}, and {LATEST_LEVEL} is the newest known here",
            "use a newer version of Moldau",
        )
    names = {each.level: each.name for each in LEVELS}
    return ok(f"its metadata.version is {level} ({names.get(level, 'none yet')})")


def _level_in(file: Path) -> int:
    level = 0
    for stored in SegmentFile(file).batches():
        if stored.batch.is_control:
            continue
        for record in stored.records():
            message = decode_record(record.value or b"")
            if isinstance(message, FeatureLevelRecord) and message.name == METADATA_VERSION:
                level = message.feature_level
    return level
