"""A bounded number of open files; those that were not used of late are closed first."""

import errno
import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from moldau.kernel.disk import path_parts

FOLDERS_MAX = 8
FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# One descriptor both reads anywhere and appends: O_APPEND leaves the position to the kernel.
FILE = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Descriptor:
    """An open file. Holding this object is the lease: it closes when the last holder lets go."""

    __slots__ = ("fd", "is_used")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_used = False  # since it was last looked at for closing

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)


class OpenFiles:
    """The open files below one directory, shared by all threads.

    A hit takes no lock. Opening does, and so does `forget`, which is called after a name came to
    mean something else: a file that was opened under the name's old meaning is then either
    in the table and dropped, or not yet opened.
    """

    def __init__(self, root: str, *, capacity: int) -> None:
        self._root = Descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._capacity = capacity
        self._files: OrderedDict[str, Descriptor] = OrderedDict()
        self._folders: dict[str, tuple[int, Descriptor]] = {}
        self._changes = 0  # of what names mean
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def root_fd(self) -> int:
        """The directory itself; good as long as this object lives."""
        return self._root.fd

    def get(self, path: str, *, create: bool = False) -> Descriptor:
        """Return the file at `path`, open for reading and appending."""
        try:
            found = self._files[path]
        except KeyError:
            return self._open(path, FILE | os.O_CREAT if create else FILE)
        found.is_used = True  # and not moved to the end of the table: every append comes here
        return found

    def find(self, path: str) -> Descriptor | None:
        """Return the file if it is open already."""
        return self._files.get(path)

    def forget(self, path: str) -> None:
        """Drop what is open at `path` and below it."""
        with self._lock:
            self._changes += 1
            if self._files.pop(path, None) is None:
                below = f"{path}/"
                # A copy, made in one go: another thread may run out of descriptors, and shrink it.
                for name in list(self._files):
                    if name.startswith(below):
                        self._files.pop(name, None)

    def parent(self, path: str) -> tuple[Descriptor, str]:
        """Return the directory that holds `path`, reached without links, and the name in it."""
        parts = path_parts(path)
        if not parts:
            raise ValueError("the log directory itself has no name in it")
        if len(parts) == 2:
            return self._folder(parts[0]), parts[1]
        directory = self._root
        for part in parts[:-1]:
            directory = self._open_in(directory.fd, part, DIRECTORY)
        return directory, parts[-1]

    def _folder(self, name: str) -> Descriptor:
        """Return a directory at the top; the last few stay open, as long as no name changes."""
        changes, found = self._folders.get(name, (-1, self._root))
        if changes != self._changes:
            changes = self._changes  # before it is opened, which may be under the old meaning
            found = self._open_in(self._root.fd, name, DIRECTORY)
            self._keep(name, found, changes)
        return found

    def _keep(self, name: str, folder: Descriptor, changes: int) -> None:
        if len(self._folders) >= FOLDERS_MAX:
            self._folders.clear()
        self._folders[name] = changes, folder

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory for listing or syncing.

        Always afresh, because a position in a listing belongs to the open file. Who lists it often
        goes on to its files: so it stays open for them.
        """
        if not path:
            return self._open_in(self._root.fd, ".", DIRECTORY)
        changes = self._changes
        parent, name = self.parent(path)
        opened = self._open_in(parent.fd, name, DIRECTORY)
        if parent is self._root:
            self._keep(name, opened, changes)
        return opened

    def _open(self, path: str, flags: int) -> Descriptor:
        with self._lock:
            parent, name = self.parent(path)
            opened = self._open_in(parent.fd, name, flags)
            while self._files and len(self._files) >= self._capacity:
                other, oldest = self._files.popitem(last=False)
                if oldest.is_used:
                    oldest.is_used = False  # it has a second chance, behind the others
                    self._files[other] = oldest
            self._files[path] = opened
            return opened

    def _open_in(self, directory: int, name: str, flags: int) -> Descriptor:
        try:
            return Descriptor(os.open(name, flags, FILE_MODE, dir_fd=directory))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        # The process has more open than it may, so open fewer from now on than was allowed.
        self._capacity = len(self._files) // 2
        self._shrink(to=self._capacity)
        return Descriptor(os.open(name, flags, FILE_MODE, dir_fd=directory))

    def _shrink(self, *, to: int) -> None:
        try:
            while len(self._files) > to:
                self._files.popitem(last=False)
        except KeyError:  # another thread was quicker
            return
