import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from moldau.cli.checks.directory import check_directory
from moldau.cli.checks.finding import Finding
from moldau.cli.format import main as format_directory
from moldau.runtime.directory_lock import find_owner

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "data"
    assert format_directory(["--data", str(path)]) == 0
    capsys.readouterr()
    return path


def problems(path: Path, cluster_id: str | None = None) -> list[Finding]:
    return [each for each in check_directory(path, cluster_id) if each.state == "problem"]


def test_a_good_directory(data: Path) -> None:
    found = list(check_directory(data, None))
    assert problems(data) == []
    assert any("belongs to node 1 of cluster" in each.what for each in found)


def test_one_that_is_not_there_and_one_that_is_empty(tmp_path: Path) -> None:
    [finding] = check_directory(tmp_path / "new", None)
    assert "moldau start --data" in finding.what
    assert problems(tmp_path) == []


def test_a_file_and_somebody_elses_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    [finding] = check_directory(file, None)
    assert finding == Finding("problem", f"{file} is a file", "name a directory")
    [finding] = problems(tmp_path)
    assert "is not empty (file), and no data directory" in finding.what


def test_another_cluster(data: Path) -> None:
    [finding] = problems(data, "another")
    assert "and the broker that was asked to cluster another" in finding.what


def test_an_identity_that_cannot_be_read(data: Path) -> None:
    (data / "meta.properties").write_text("version=9\n")
    [finding] = problems(data)
    assert "version 9 instead of 1" in finding.what


def test_damaged_metadata(data: Path) -> None:
    file = next((data / "__cluster_metadata-0").glob("*.checkpoint"))
    content = bytearray(file.read_bytes())
    content[16] = 9  # the format of the records
    file.write_bytes(content)
    [finding] = problems(data)
    assert "is damaged" in finding.what
    assert "moldau log" in finding.way_out


def test_a_full_disk(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 10**6))
    [finding] = problems(data)
    assert finding.what.startswith("0.0 of 1000.0 GB are free")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_missing_permissions(data: Path) -> None:
    data.chmod(0o500)
    [finding] = problems(data)
    assert "may not be read and written" in finding.what


def test_nobody_has_a_directory(data: Path) -> None:
    assert find_owner(data) is None
