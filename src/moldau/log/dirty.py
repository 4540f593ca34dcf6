"""What a partition has changed on disk and not synced yet."""

from dataclasses import dataclass

from moldau.kernel.ids import Offset
from moldau.log.file_names import relocated
from moldau.log.segment import Segment


@dataclass(slots=True)
class Dirty:
    """What has to be synced for the log to be durable up to `end_offset`.

    First the files, then the checkpoints (to be replaced with this content), then the names in the
    directory. A file that is missing was removed by retention meanwhile, which is fine.
    """

    end_offset: Offset  # lowered when the log is cut in the meantime
    files: tuple[str, ...]
    checkpoints: tuple[tuple[str, bytes], ...]
    directory: str | None  # None: it has no new names
    segments: tuple[Segment, ...]  # whose names become durable


class DirtyFiles:
    """Gathers changes until the next sync round takes them."""

    __slots__ = (
        "_checkpoints",
        "_directory",
        "_has_names",
        "_segments",
        "_taken",
        "files",
        "has_closed",
    )

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.files: dict[str, None] = {}
        """Those with new content; the kernel looks whether a segment's is among them."""
        self._checkpoints: dict[str, bytes] = {}
        self._segments: dict[Offset, Segment] = {}
        self._has_names = False
        self._taken: list[Dirty] = []  # what is being synced
        self.has_closed = False  # a segment is complete: worth a sync whatever the durability

    def __bool__(self) -> bool:
        return bool(self.files or self._checkpoints or self._has_names)

    @property
    def is_taken(self) -> bool:
        """Whether a sync round has a part of it."""
        return bool(self._taken)

    def add_file(self, path: str) -> None:
        """A file has new content."""
        self.files[path] = None

    def add_segment(self, segment: Segment) -> None:
        """A segment has new content, and perhaps its files are new."""
        path = segment.path
        if path in self.files:
            return
        self.files[path] = None
        if not segment.is_durable:
            self._segments[segment.base_offset] = segment
            self._has_names = True

    def add_names(self) -> None:
        """Files were made, renamed or removed."""
        self._has_names = True

    def add_checkpoint(self, path: str, content: bytes) -> None:
        """A small file is to be replaced as a whole."""
        self._checkpoints[path] = content

    def remove_segment(self, segment: Segment) -> None:
        """A segment has left the log."""
        for path in segment.paths:
            self.files.pop(path, None)
        self._segments.pop(segment.base_offset, None)

    def relocate(self, folder: str) -> None:
        """The partition's folder has another name, and nothing in it is being synced."""
        assert not self._taken, "what is being synced has the old name"
        self.files = {relocated(path, folder): None for path in self.files}
        self._checkpoints = {relocated(p, folder): c for p, c in self._checkpoints.items()}
        self._directory = folder

    def cut(self, end_offset: Offset) -> None:
        """The log was cut: what is being synced vouches for nothing that comes there now."""
        for dirty in self._taken:
            dirty.end_offset = min(dirty.end_offset, end_offset)

    def take(self, end_offset: Offset) -> Dirty:
        """Hand out everything that gathered."""
        dirty = Dirty(
            end_offset,
            tuple(self.files),
            tuple(self._checkpoints.items()) if self._checkpoints else (),
            self._directory if self._has_names else None,
            tuple(self._segments.values()) if self._segments else (),
        )
        self.files.clear()
        # Nearly always there is nothing but files.
        if self._checkpoints:
            self._checkpoints.clear()
        if self._segments:
            self._segments.clear()
        self._has_names = self.has_closed = False
        self._taken.append(dirty)
        return dirty

    def done(self, dirty: Dirty) -> None:
        """What was handed out is on the device."""
        if self._taken[0] is dirty:
            del self._taken[0]
        else:
            self._forget(dirty)
        for segment in dirty.segments:
            segment.is_durable = True

    def put_back(self, dirty: Dirty) -> None:
        """There was no room for a checkpoint: all of it is still to be synced."""
        self._forget(dirty)
        self.files = dict.fromkeys(dirty.files) | self.files
        self._checkpoints = dict(dirty.checkpoints) | self._checkpoints
        self._segments = {s.base_offset: s for s in dirty.segments} | self._segments
        self._has_names = self._has_names or dirty.directory is not None

    def _forget(self, dirty: Dirty) -> None:
        self._taken = [taken for taken in self._taken if taken is not dirty]
