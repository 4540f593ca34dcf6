"""One process runs an app in a folder, and others can tell which."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.supervision.run_folder import (
    STATUS,
    AlreadyRunsError,
    RunFolder,
    RunProcess,
    find_runs,
    run_folder_of,
)

HOLD = """
import sys
from pathlib import Path
from moldau.pipelines.supervision.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).hold("shop"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_holds_it_until_it_dies(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.find_process() is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert folder.find_process() == RunProcess(other.pid, socket.gethostname())
        with (
            pytest.raises(
                AlreadyRunsError, match=rf"app shop runs already, as process {other.pid}"
            ),
            folder.hold("shop"),
        ):
            pytest.fail("there are two")
        assert folder.find_process() == RunProcess(other.pid, socket.gethostname())
        os.kill(other.pid, signal.SIGKILL)
    assert folder.find_process() is None
    with folder.hold("shop"):
        assert folder.find_process() == RunProcess(os.getpid(), socket.gethostname())
    assert folder.find_process() is None


def test_a_process_of_another_machine_is_told_apart_from_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "castle")
    with folder.hold("shop"):
        assert str(folder.find_process()) == f"process {os.getpid()}"
        monkeypatch.setattr(socket, "gethostname", lambda: "bridge")
        process = folder.find_process()
        assert process == RunProcess(os.getpid(), "castle")
        assert not process.is_here
        with (
            pytest.raises(AlreadyRunsError, match=rf"as process {os.getpid()} on castle: "),
            folder.hold("shop"),
        ):
            pytest.fail("there are two")


def test_what_is_told_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_status() is None
    folder.write_status({"app": "shop", "queries": []})
    folder.write_status({"app": "shop", "queries": [1]})
    status = folder.read_status()
    assert status is not None
    assert status.pop("at_ms") > 0
    assert status == {"app": "shop", "queries": [1]}
    assert [path.name for path in tmp_path.iterdir()] == [STATUS]
    (tmp_path / STATUS).write_text(json.dumps(status)[:-3])
    with pytest.raises(PipelineError, match=r"status\.json is damaged: delete it"):
        folder.read_status()


def test_a_backfill_runs_beside_the_app(tmp_path: Path) -> None:
    live, backfill = run_folder_of(tmp_path / "shop"), run_folder_of(tmp_path / "shop", "again")
    with live.hold("shop"), backfill.hold("shop"):
        assert list(find_runs(tmp_path)) == ["shop"]
        assert find_runs(tmp_path)["shop"].path == live.path


def test_folders_that_nothing_ran_in(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    assert find_runs(tmp_path) == {}
    assert find_runs(tmp_path / "missing") == {}
