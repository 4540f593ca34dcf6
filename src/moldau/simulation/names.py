"""Names as the system shows them and as the device holds them."""

from collections.abc import Iterator
from random import Random
from typing import TypeAlias

from moldau.simulation.cached_file import CachedFile


class Directory:
    """The names in one directory: those that are shown, and those on the device."""

    def __init__(self) -> None:
        self.shown: dict[str, DiskNode] = {}
        self.durable: dict[str, DiskNode] = {}


DiskNode: TypeAlias = Directory | CachedFile
NameEdit: TypeAlias = tuple[Directory, str, DiskNode | None]


class Names:
    """A tree of directories, and the changes that no sync has put on the device yet.

    A change is whole or not at all, also when it touches two directories. With a journal the
    changes of one directory survive in their order; without, only those of one name do. Between
    directories nothing is promised, which is less than ext4's single journal gives, and what other
    file systems are content with.
    """

    def __init__(self, *, is_journaled: bool = True) -> None:
        self.root = Directory()
        self._is_journaled = is_journaled
        self._pending: list[tuple[NameEdit, ...]] = []

    def change(self, *edits: NameEdit) -> None:
        """Give names to nodes, or take them away, all at once."""
        for directory, name, node in edits:
            _set(directory.shown, name, node)
        self._pending.append(edits)

    def sync(self, directory: Directory) -> None:
        """Put the directory's changes on the device, with those that they are tied to."""
        needed = {directory}
        kept, left = [], []
        for edits in reversed(self._pending):
            touched = {edit[0] for edit in edits}
            if touched & needed:
                needed |= touched
                kept.append(edits)
            else:
                left.append(edits)
        self._pending = left[::-1]
        for edits in reversed(kept):
            _write(edits)

    def crash(self, random: Random) -> None:
        """Become what is found after a power loss, files included."""
        lost_rate = random.choice((0.0, 0.1, 0.5, 1.0))
        lost: set[Directory | tuple[Directory, str]] = set()
        for edits in self._pending:
            touched = {edit[0] if self._is_journaled else edit[:2] for edit in edits}
            if touched & lost or random.random() < lost_rate:
                lost |= touched
            else:
                _write(edits)
        self._pending.clear()
        self._show(self.root, random)

    def _show(self, directory: Directory, random: Random) -> None:
        directory.shown = dict(sorted(directory.durable.items()))
        for node in directory.shown.values():
            if isinstance(node, Directory):
                self._show(node, random)
            else:
                node.crash(random)


def files_below(directory: Directory, path: str = "") -> Iterator[tuple[str, CachedFile]]:
    """Yield the files below a directory, with their paths."""
    for name, node in directory.shown.items():
        if isinstance(node, CachedFile):
            yield path + name, node
        else:
            yield from files_below(node, f"{path}{name}/")


def _write(edits: tuple[NameEdit, ...]) -> None:
    for directory, name, node in edits:
        _set(directory.durable, name, node)


def _set(names: dict[str, DiskNode], name: str, node: DiskNode | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node
