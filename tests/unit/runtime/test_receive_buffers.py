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


def test_what_is_lent_is_left_alone_until_it_is_given_back() -> None:
    buffers = ReceiveBuffers(CHUNK_BYTES * 3)
    own = buffers.take(1)
    own[:4] = b"lent"
    buffers.memory[:5] = b"arena"
    made = bytearray(b"made")
    given = [own[:2], own[2:4], buffers.memory[:5], made]
    pieces, give_back = buffers.lend(given)
    buffers.retire(own)
    buffers.end_turn()
    buffers.memory[:5] = b"xxxxx"
    assert [bytes(piece) for piece in pieces] == [b"le", b"nt", b"arena", b"made"]
    assert pieces[3] is made
    other = buffers.take(1)
    assert bytes(other[:4]) != b"lent"
    assert buffers.has_room
    buffers.take(1)
    assert not buffers.has_room, "what is lent counts"
    give_back()
    assert buffers.has_room
    buffers.end_turn()
    assert bytes(buffers.take(1)[:4]) == b"lent"
