"""Servers are found by files: those of processes that are there, on this machine."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from moldau.pipelines.views.announcing import (
    announced,
    announcement_folder,
    find_addresses,
    find_announced,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return announcement_folder()


def test_a_server_is_found_while_it_is_there() -> None:
    assert find_announced() == []
    with announced("http://127.0.0.1:1", "here"):
        (found,) = find_announced()
        assert (found.address, found.cluster) == ("http://127.0.0.1:1", "here")
        with announced("http://127.0.0.1:2", "here"):
            assert len(find_announced()) == 2
    assert find_announced() == []


def test_what_a_killed_process_has_left_goes(folder: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with announced("http://127.0.0.1:1", "here"):
        (found,) = find_announced()
        left = folder / "left.json"
        left.write_text(json.dumps(asdict(replace(found, pid=ended.pid))))
        assert find_announced() == [found]
        assert not left.exists()


def test_what_is_not_for_us_is_left_alone(folder: Path) -> None:
    with announced("http://127.0.0.1:1", "here"):
        (found,) = find_announced()
        (folder / "elsewhere.json").write_text(json.dumps(asdict(replace(found, host="castle"))))
        (folder / "damaged.json").write_text("{")
        (folder / "newer.json").write_text('{"more": 1}')
        assert find_announced() == [found]
    assert len(list(folder.iterdir())) == 3


def test_a_folder_that_cannot_be_written_to_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "moldau").write_text("a file")
    with announced("http://127.0.0.1:1", "here"):
        assert find_announced() == []


def test_without_servers_no_cluster_is_asked() -> None:
    assert find_addresses({"bootstrap.servers": "127.0.0.1:1"}) == []
