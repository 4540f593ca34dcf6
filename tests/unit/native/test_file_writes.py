import errno
import os
import signal
import struct
import threading
from fcntl import ioctl
from termios import FIONREAD

import pytest

from moldau._native.file_writes import write_pieces


def test_all_pieces_are_written_in_their_order(tmp_path) -> None:
    pieces = [b"01234", b"", bytearray(b"5678"), memoryview(b"x9x")[1:2]]
    with (tmp_path / "a").open("wb") as file:
        write_pieces(file.fileno(), pieces)
        write_pieces(file.fileno(), [])
        write_pieces(file.fileno(), [b"", b""])
    assert (tmp_path / "a").read_bytes() == b"0123456789"


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals go to the main one"
)
def test_a_short_write_is_continued() -> None:
    """A signal ends a write to a full pipe early; the rest follows."""
    reading, writing = os.pipe()
    pieces = [bytes([number]) * 30_000 for number in range(20)]
    whole = b"".join(pieces)
    found = bytearray()
    caught = []
    before = signal.signal(signal.SIGUSR1, lambda *_: caught.append(True))

    def read() -> None:
        filled = 0
        while filled < 1 << 16:
            (filled,) = struct.unpack("i", ioctl(reading, FIONREAD, bytes(4)))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        while len(found) < len(whole):
            found.extend(os.read(reading, 1 << 16))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        write_pieces(writing, pieces)
        reader.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
        os.close(reading)
        os.close(writing)
    assert found == whole
    assert caught


def test_errors_are_the_systems(tmp_path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space") as caught:
        write_pieces(full, [b"x"])
    assert caught.value.errno == errno.ENOSPC
    os.close(full)
    reading = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        write_pieces(reading, [b"x" * (1 << 17)])
    os.close(reading)
    with pytest.raises(TypeError):
        write_pieces(1, ["text"])
