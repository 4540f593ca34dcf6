"""Directories become a node's own, or are refused."""

from pathlib import Path

import pytest

from moldau.kernel.snapshot_id import FIRST_SNAPSHOT
from moldau.log.errors import DirectoryRefusedError
from moldau.log.identity import META_PROPERTIES, parse_meta_properties
from moldau.metadata.bootstrap import BOOTSTRAP_FILE
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.snapshot import read_snapshot
from moldau.protocol.stored.cluster_metadata import FeatureLevelRecord
from moldau.protocol.stored.control_records import VotersRecord
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.runtime.event_loop import run
from moldau.runtime.formatting import METADATA_FOLDER, Prepared, prepare_directories
from moldau.runtime.machine import MachineEnvironment

NOW_MS = 1_700_000_000_000


def on_machine(settings: BrokerSettings) -> Prepared:
    async def prepared() -> Prepared:
        return prepare_directories(settings, MachineEnvironment())

    return run(prepared())


def prepare(*roots: Path, **texts: str) -> Prepared:
    """Prepare directories, and let go of them."""
    given = {name.replace("_", "."): text for name, text in texts.items()}
    given.setdefault("log.dirs", ",".join(map(str, roots)))
    prepared = on_machine(BrokerSettings.parse(given))
    prepared.release()
    return prepared


def test_a_new_directory_is_formatted_once(tmp_path: Path) -> None:
    first = prepare(tmp_path)
    content = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    second = prepare(tmp_path)
    assert first.is_new
    assert not second.is_new
    assert (second.cluster_id, second.metadata_directory_id) == (
        first.cluster_id,
        first.metadata_directory_id,
    )
    assert content == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    records = read_snapshot((tmp_path / BOOTSTRAP_FILE).read_bytes()).records
    assert FeatureLevelRecord(name="metadata.version", feature_level=30) in records
    snapshot = (tmp_path / METADATA_FOLDER / FIRST_SNAPSHOT.file_name).read_bytes()
    [voters] = [v for v in read_snapshot(snapshot).control if isinstance(v, VotersRecord)]
    [voter] = voters.voters
    assert voter.voter_directory_id == first.metadata_directory_id


def test_a_directory_is_formatted_for_the_release_that_was_asked_for(tmp_path: Path) -> None:
    prepare(tmp_path, metadata_version="4.4")
    records = read_snapshot((tmp_path / BOOTSTRAP_FILE).read_bytes()).records
    assert FeatureLevelRecord(name="metadata.version", feature_level=33) in records
    with pytest.raises(DirectoryRefusedError, match=r"there is no release 2\.8"):
        prepare(tmp_path / "other", metadata_version="2.8")


def test_every_directory_has_an_id_of_its_own(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in "abc"]
    prepared = prepare(*roots[:2], metadata_log_dir=str(roots[2]))
    found = [parse_meta_properties("", (root / META_PROPERTIES).read_bytes()) for root in roots]
    assert {identity.cluster_id for identity in found} == {prepared.cluster_id}
    assert len({identity.directory_id for identity in found}) == 3
    assert not (roots[0] / METADATA_FOLDER).exists()
    assert (roots[2] / METADATA_FOLDER).exists()
    # One more is added to the cluster.
    prepare(*roots[:2], tmp_path / "d", metadata_log_dir=str(roots[2]))
    assert (tmp_path / "d" / META_PROPERTIES).exists()


def test_formatting_that_was_cut_short_begins_anew(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / META_PROPERTIES).unlink()
    assert prepare(tmp_path).is_new


def test_a_metadata_log_without_an_owner_is_not_formatted(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / META_PROPERTIES).unlink()
    (tmp_path / METADATA_FOLDER / "00000000000000000000.log").write_bytes(b"records")
    with pytest.raises(DirectoryRefusedError, match="is not empty"):
        prepare(tmp_path)


def test_metadata_that_is_elsewhere_is_not_made_anew(tmp_path: Path) -> None:
    prepare(tmp_path / "a")
    with pytest.raises(DirectoryRefusedError, match="metadata is not here"):
        prepare(tmp_path / "b", tmp_path / "a")


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "a")
    prepare(tmp_path / "b")
    with pytest.raises(DirectoryRefusedError, match="belongs to cluster"):
        prepare(tmp_path / "a", tmp_path / "b")


def test_another_node_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path)
    with pytest.raises(DirectoryRefusedError, match="belongs to node 1, and this is node 2"):
        prepare(tmp_path, node_id="2")


def test_a_directory_in_use_stays_as_it_is(tmp_path: Path) -> None:
    settings = BrokerSettings.parse({"log.dirs": str(tmp_path)})
    held = on_machine(settings)
    with pytest.raises(DirectoryInUseError):
        prepare(tmp_path)
    held.release()
    prepare(tmp_path)
