import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.kernel.disk import DiskFailedError, DiskFullError
from moldau.runtime.disk import FileDisk
from tests.integration.faults import (
    FailingVolume,
    PowerLossVolume,
    SmallVolume,
    failing_fsync,
)

WRITER = Path(__file__).with_name("disk_writer.py")
LOSSES = int(os.environ.get("MOLDAU_POWER_LOSSES", "3"))
KILLS = int(os.environ.get("MOLDAU_KILLS", "3"))

pytestmark = pytest.mark.alone


def test_synced_content_and_names_survive_a_power_loss(tmp_path):
    with PowerLossVolume(tmp_path) as volume:
        write_and_lose_power(volume)
        volume.restart()
        disk = FileDisk(volume.path).waiting()
        assert disk.list("t-0") == ["a"]
        assert disk.read("t-0/a", 0, 99_999) == b"s" * 5000
        assert disk.read("checkpoint", 0, 9) == b"1"
        del disk


def write_and_lose_power(volume: PowerLossVolume) -> None:
    disk = FileDisk(volume.path)
    disk.make_directory("t-0")
    disk.append("t-0/a", [b"s" * 5000])
    disk.sync("t-0/a")
    disk.sync_directory("t-0")
    disk.sync_directory("")
    disk.replace("checkpoint", b"1")
    disk.append("t-0/a", [b"lost" * 5000])
    disk.append("t-0/new", [b"lost"])
    volume.power_loss()
    for operation in (
        lambda: disk.append("t-0/a", [b"x"]),
        lambda: disk.sync("t-0/a"),
        lambda: disk.waiting().read("t-0/a", 0, 1),
    ):
        with pytest.raises(DiskFailedError):
            operation()


def test_a_name_can_survive_its_content(tmp_path):
    with PowerLossVolume(tmp_path) as volume:
        disk = FileDisk(volume.path)
        disk.append("new", [b"x" * 3000])
        volume.power_loss(flush_journal=True)
        del disk
        volume.restart()
        assert (volume.path / "new").stat().st_size == 0


def test_a_full_volume_takes_a_part_and_resumes(tmp_path):
    with SmallVolume(tmp_path, size_mb=2) as volume:
        disk = FileDisk(volume.path)
        disk.append("ballast", [bytes(1 << 20)])
        disk.append("a", [b"kept"])
        with pytest.raises(DiskFullError, match="No space left"):
            disk.append("a", [bytes(1 << 20), bytes(1 << 20)])
        disk.truncate("a", 4)
        assert disk.read("a", 0, 99) == b"kept"
        disk.remove("ballast")
        disk.append("a", [bytes(1 << 20)])
        with pytest.raises(DiskFullError):
            disk.replace("a", bytes(4 << 20))
        assert disk.list("") == ["a"]
        assert disk.size("a") == 4 + (1 << 20)
        del disk


def test_a_device_that_fails_loses_data_and_says_so_once(tmp_path):
    """The reason why a failed sync is never tried again."""
    with FailingVolume(tmp_path) as volume:
        disk = FileDisk(volume.path)
        for _ in range(20):
            disk.append("a", [bytes(1 << 20)])
            try:
                disk.sync("a")
            except DiskFailedError:
                break
        else:
            pytest.fail("the device never failed")
        disk.sync("a")
        del disk


def test_a_failing_sync_stops_the_writer(tmp_path):
    environment, switch = failing_fsync(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    with writer(data, 3, env=environment) as child:
        for _ in range(20):
            assert child.stdout.readline()
        switch.touch()
        durable = child.communicate(timeout=20)[0]
    assert child.returncode == 0
    assert not durable or durable.endswith("\n")


@pytest.mark.long
def test_what_was_acknowledged_survives_a_killed_writer(tmp_path):
    for turn in range(KILLS):
        data = tmp_path / str(turn)
        data.mkdir()
        with writer(data, 5) as child:
            acknowledged = acknowledgements(child, lines=random.randint(1, 300))
            child.kill()
        check(data, acknowledged)


@pytest.mark.long
def test_what_was_acknowledged_survives_a_power_loss(tmp_path):
    with PowerLossVolume(tmp_path) as volume:
        for turn in range(LOSSES):
            data = volume.path / str(turn)
            data.mkdir()
            FileDisk(volume.path).sync_directory("")
            with writer(data, 5) as child:
                acknowledged = acknowledgements(child, lines=random.randint(1, 300))
                volume.power_loss(flush_journal=turn % 2 == 1)
                child.communicate(timeout=20)
            volume.restart()
            check(data, acknowledged)
            shutil.rmtree(data)


@contextmanager
def writer(directory: Path, partitions: int, **options) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(WRITER), str(directory), str(partitions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as child:
        try:
            yield child
        finally:
            child.kill()


def acknowledgements(child: subprocess.Popen[str], *, lines: int) -> dict[str, int]:
    found = {}
    for _ in range(lines):
        name, size = child.stdout.readline().split()
        found[name] = int(size)
    return found


def check(directory: Path, acknowledged: dict[str, int]) -> None:
    pattern = bytes(range(251))
    assert acknowledged
    for name, size in acknowledged.items():
        content = (directory / name).read_bytes()[:size]
        assert content == (pattern * (size // 251 + 1))[:size], name
