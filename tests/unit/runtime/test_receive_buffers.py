from moldau.runtime.receive_buffers import ARENA_BYTES, CHUNK_BYTES, ReceiveBuffers


def test_what_is_kept_is_left_alone_until_the_turn_ends() -> None:
    buffers = ReceiveBuffers(None)
    memoryview(buffers)[:3] = b"abc"
    buffers.position += 3
    memoryview(buffers)[:3] = b"def"
    assert bytes(buffers.memory[:6]) == b"abcdef"
    buffers.end_turn()
    memoryview(buffers)[:1] = b"x"
    assert bytes(buffers.memory[:6]) == b"xbcdef"


def test_the_arena_is_full_when_a_chunk_does_not_fit() -> None:
    buffers = ReceiveBuffers(None)
    chunks = 0
    while not buffers.is_full():
        assert len(memoryview(buffers)) == CHUNK_BYTES
        buffers.position += CHUNK_BYTES - 1
        chunks += 1
    assert chunks == ARENA_BYTES // CHUNK_BYTES
    buffers.end_turn()
    assert not buffers.is_full()


def test_buffers_are_used_again_after_the_turn() -> None:
    buffers = ReceiveBuffers(None)
    assert len(buffers.take(1)) == CHUNK_BYTES
    first = buffers.take(400_000)
    assert len(first) == 524_288
    first[0] = 7
    buffers.retire(first)
    assert buffers.take(400_000)[0] == 0, "somebody may still refer to the first"
    buffers.end_turn()
    assert buffers.take(400_000)[0] == 7


def test_large_buffers_have_a_bound_that_the_last_may_exceed() -> None:
    buffers = ReceiveBuffers(1 << 20)
    taken = buffers.take((1 << 20) - 1)
    assert not buffers.has_room
    buffers.retire(taken)
    assert buffers.has_room
