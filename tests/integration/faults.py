"""Real disk faults on one machine: power loss, a full volume, a device that fails to sync.

Everything is mounted in a mount namespace of the test process, so that nothing stays mounted
whatever happens to it; loop devices free themselves with their last mount.
"""

import ctypes
import fcntl
import functools
import os
import shutil
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
SHUTDOWN_FLUSH_JOURNAL = 1
SHUTDOWN_AT_ONCE = 2
CLONE_NEWNS = 0x20000
SHIM = Path(__file__).with_name("failing_fsync.c")


class CommandError(Exception):
    """A tool failed: no reason to skip once a volume is up."""


class Volume(ABC):
    """A file system of our own, mounted at `path` while the block runs; skips where it cannot."""

    def __init__(self, workplace: Path, *, size_mb: int) -> None:
        self.path = workplace / "volume"
        self._size_mb = size_mb
        self._mounted: list[Path] = []

    def __enter__(self) -> Self:
        _enter_namespace()
        self.path.mkdir()
        try:
            self._build()
        except CommandError as error:
            self._unmount_all()
            pytest.skip(str(error))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unmount_all()
        self.path.rmdir()

    @abstractmethod
    def _build(self) -> None:
        """Make the file system and mount it."""

    def _mount(self, path: Path, *arguments: str) -> None:
        _run("mount", *arguments, str(path))
        self._mounted.append(path)

    def _unmount_all(self) -> None:
        while self._mounted:
            path = self._mounted.pop()
            if subprocess.run(["umount", path], check=False, capture_output=True).returncode:
                _run("umount", "--lazy", str(path))  # a process that the test left still uses it


class SmallVolume(Volume):
    """A tmpfs that is soon full."""

    def _build(self) -> None:
        self._mount(self.path, "-t", "tmpfs", "-o", f"size={self._size_mb}m", "tmpfs")


class PowerLossVolume(Volume):
    """An ext4 on a file, whose power can be cut.

    The shutdown ioctl stops the file system at once: what it had not sent to the device is lost,
    the journal included if it is told so, and everything fails with EIO until the volume is mounted
    again. What was sent counts as written even without a flush of the device's cache: a missing
    flush is the one thing that this does not find.
    """

    def __init__(self, workplace: Path, *, size_mb: int = 64) -> None:
        super().__init__(workplace, size_mb=size_mb)
        self._image = workplace / "volume.img"

    def power_loss(self, *, flush_journal: bool = False) -> None:
        """Cut the power; with `flush_journal` the names survive and the content does not."""
        flag = SHUTDOWN_FLUSH_JOURNAL if flush_journal else SHUTDOWN_AT_ONCE
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN, struct.pack("I", flag))
        finally:
            os.close(directory)

    def restart(self) -> None:
        """Mount again, as after a boot. Nobody may have files open here any more."""
        _run("umount", str(self.path))
        self._mounted.remove(self.path)
        self._mount(self.path, "-o", "loop", str(self._image))

    def _build(self) -> None:
        _make_ext4(self._image, self._size_mb)
        self._mount(self.path, "-o", "loop", str(self._image))


class FailingVolume(Volume):
    """An ext4 that believes in more room than its device has.

    Writes succeed until about `size_mb` are used; then a sync fails with EIO, the data is gone, and
    the next sync succeeds: what Linux does when a device fails.
    """

    def __init__(self, workplace: Path, *, size_mb: int = 8) -> None:
        super().__init__(workplace, size_mb=size_mb)
        self._device = workplace / "device"

    def repair(self) -> None:
        """Give the device the room that it pretended to have, and mount it again."""
        _run("umount", str(self.path))
        self._mounted.remove(self.path)
        _run("mount", "-o", f"remount,size={32 * self._size_mb}m", str(self._device))
        self._mount(self.path, "-o", "loop", str(self._device / "image"))

    def _build(self) -> None:
        self._device.mkdir()
        self._mount(self._device, "-t", "tmpfs", "-o", f"size={self._size_mb}m", "tmpfs")
        _make_ext4(self._device / "image", 16 * self._size_mb)
        self._mount(self.path, "-o", "loop", str(self._device / "image"))


def failing_fsync(workplace: Path) -> tuple[dict[str, str], Path]:
    """Return the environment for a child process, and the file whose presence makes syncs fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or not compiler:
        pytest.skip("failing syncs need Linux and a C compiler")
    library = workplace / "failing_fsync.so"
    _run(compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl")
    switch = workplace / "syncs-fail"
    environment = {"LD_PRELOAD": str(library), "MOLDAU_FAILING_FSYNC": str(switch)}
    return os.environ | environment, switch


def _make_ext4(image: Path, size_mb: int) -> None:
    with image.open("wb") as file:
        file.truncate(size_mb << 20)
    _run("mkfs.ext4", "-q", "-F", str(image))


@functools.cache
def _enter_namespace() -> None:
    """Give this process its own view of what is mounted, once."""
    if not sys.platform.startswith("linux") or os.geteuid():
        pytest.skip("mounting test volumes needs root on Linux")
    for tool in ("mkfs.ext4", "mount", "umount"):
        if not shutil.which(tool):
            pytest.skip(f"mounting test volumes needs {tool}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        pytest.skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    _run("mount", "--make-rprivate", "/")


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise CommandError(f"{' '.join(command)}: {done.stderr.strip()}")
