"""What the files of a partition are called."""

import re
from typing import Final, NamedTuple

from moldau.kernel.ids import Offset

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
ABORTED_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, ABORTED_INDEX)

DELETED: Final = ".deleted"  # out of the log, removed after file.delete.delay.ms
CLEANED: Final = ".cleaned"  # compaction is writing it
SWAP: Final = ".swap"  # compaction has written it, and it is about to take its place
CUT: Final = ".cut"  # recovery took it out of the log; only a person removes it

_NAME = re.compile(
    r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?"
)


class FileName(NamedTuple):
    """A file's name taken apart; `state` is empty for what belongs to the log."""

    base_offset: Offset
    suffix: str
    state: str


def parse_name(name: str) -> FileName | None:
    """Take a name apart; None if the file is none of a segment."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) >= 1 << 63:
        return None
    return FileName(Offset(int(match[1])), match[2], match[3] or "")


def relocated(path: str, folder: str) -> str:
    """Return the path that a partition's file has when its folder is renamed."""
    return f"{folder}/{path.rpartition('/')[2]}"


def segment_path(directory: str, base_offset: int, suffix: str = LOG) -> str:
    """Return the path of a segment's file."""
    return f"{directory}/{base_offset:020}{suffix}"
