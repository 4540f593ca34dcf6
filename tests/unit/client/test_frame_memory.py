"""Memory is used again only when nobody sees it."""

from moldau.client.frame_memory import FRAME_BYTES_MAX, FRAMES_MAX, ROUND_BYTES, FrameMemory


def test_what_is_given_back_is_taken_again() -> None:
    memory = FrameMemory()
    buffer = memory.take(100)
    assert memory.give(buffer)
    assert memory.take(ROUND_BYTES) is buffer
    assert memory.take(1) is not buffer


def test_what_somebody_sees_is_not_taken_back() -> None:
    memory = FrameMemory()
    buffer = memory.take(100)
    view = memoryview(buffer)[10:20]
    assert not memory.give(buffer)
    del view
    size = len(buffer)
    assert memory.give(buffer)
    assert not memory.give(buffer), "twice"
    assert len(buffer) == size


def test_only_what_fits_is_kept() -> None:
    memory = FrameMemory()
    assert not memory.give(b"bytes are nobody's to write to")
    assert not memory.give(bytearray(10))
    assert not memory.give(bytearray(FRAME_BYTES_MAX + 1))
    given = [bytearray(ROUND_BYTES * (k + 1)) for k in range(FRAMES_MAX + 2)]
    for buffer in given:
        assert memory.give(buffer)
    assert memory.take(1) is given[2], "the largest are kept, and the smallest of them given"
