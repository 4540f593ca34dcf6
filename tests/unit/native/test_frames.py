import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau._native.frames import (
    Frame,
    FrameSplitter,
    Produce,
    encode_produced,
    parse_produce,
)
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import APIS
from moldau.protocol.framing import encode_response
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

FLEXIBLE_SINCE = {api.key: api.flexible for api in APIS}
LIMIT = 1 << 20


def frame_of(
    body: bytes,
    *,
    api_key: int = 0,
    version: int = 9,
    correlation_id: int = 7,
    client_id: str | None = "me",
) -> bytes:
    header_version = 2 if version >= FLEXIBLE_SINCE.get(api_key, 99) else 1
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    ).encode(header_version)
    return sized(header + body)


def sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def split(data: bytes, start: int = 0, **limits: int) -> tuple[list[Frame], int]:
    limits = {"frame_bytes_max": LIMIT} | limits
    return FrameSplitter(FLEXIBLE_SINCE).split(data, start, len(data), **limits)


# Frames.


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(FLEXIBLE_SINCE)),
            st.integers(0, 20),
            st.integers(-(2**31), 2**31 - 1),
            st.none() | st.text(max_size=80),
            st.binary(max_size=30),
        ),
        max_size=5,
    ),
    st.integers(0, 60),
    st.binary(max_size=10),
)
def test_whole_frames_are_split_off(
    requests: Sequence[tuple[int, int, int, str | None, bytes]], cut: int, before: bytes
) -> None:
    encoded = [
        frame_of(body, api_key=key, version=version, correlation_id=number, client_id=client)
        for key, version, number, client, body in requests
    ]
    data = before + b"".join(encoded)
    data = data[: max(len(before), len(data) - cut)]
    frames, position = split(data, len(before))
    expected_end = len(before)
    for frame, whole, request in zip(frames, encoded, requests, strict=False):
        expected_end += len(whole)
        key, version, number, client, body = request
        assert (frame.api_key, frame.api_version, frame.correlation_id) == (key, version, number)
        assert frame.known
        assert frame.client_id == client
        assert frame.end == expected_end
        assert data[frame.body : frame.end] == body
    assert position == expected_end
    assert len(frames) == len(encoded) or position + len(encoded[len(frames)]) > len(data)


def test_a_client_id_is_not_taken_for_one_that_resembles_it() -> None:
    ids = ["one", "two", "two", "", None, "onE", "one" * 40, "two" * 40, "two"]
    frames, _ = split(b"".join(frame_of(b"", client_id=client_id) for client_id in ids))
    assert [frame.client_id for frame in frames] == ids


def test_header_tags_are_skipped() -> None:
    header = struct.pack(">hhihs", 18, 3, 5, 1, b"x")
    tags = b"\x02" + b"\x05\x03abc" + b"\x80\x01\x00"
    [frame], _ = split(sized(header + tags + b"body"))
    assert (frame.client_id, frame.end - frame.body) == ("x", 4)


def test_an_unknown_api_is_returned_without_a_client_id() -> None:
    for api_key in (-1, 7, 95, 255, 256, 32767):
        data = sized(struct.pack(">hhi", api_key, 3, 9) + b"\xff" * 5)
        [frame], position = split(data)
        assert not frame.known
        assert (frame.api_key, frame.api_version, frame.correlation_id) == (api_key, 3, 9)
        assert (frame.client_id, frame.body, frame.end) == (None, 12, position)


def test_an_unknown_version_has_the_header_of_the_newest() -> None:
    # What a newer client sends first; the answer says which versions there are.
    [frame], _ = split(frame_of(b"", api_key=18, version=99))
    assert (frame.api_version, frame.client_id) == (99, "me")


def test_at_most_so_many_frames_per_call() -> None:
    data = frame_of(b"x") * 10
    splitter = FrameSplitter(FLEXIBLE_SINCE)
    frames, position = splitter.split(data, 0, len(data), frame_bytes_max=LIMIT, frames_max=4)
    assert len(frames) == 4
    assert position == 4 * len(data) // 10
    frames, position = splitter.split(data, position, len(data), frame_bytes_max=LIMIT)
    assert (len(frames), position) == (6, len(data))


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 7, LIMIT + 1, 2**31 - 1])
def test_a_frame_below_zero_or_over_the_limit_is_refused(size: int) -> None:
    bad = struct.pack(">i", size)
    with pytest.raises(ProtocolError, match=f"a frame of {size} bytes"):
        split(bad)
    good = frame_of(b"x")
    frames, position = split(good + bad)
    assert (len(frames), position) == (1, len(good))
    with pytest.raises(ProtocolError):
        split(good + bad, position)


def test_a_frame_at_the_limit_is_allowed() -> None:
    data = frame_of(b"x" * 100)
    assert len(split(data, frame_bytes_max=len(data) - 4)[0]) == 1
    with pytest.raises(ProtocolError):
        split(data, frame_bytes_max=len(data) - 5)


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\0",
        b"\0\x05abcd",
        b"\xff\xfe",  # length -2
        b"\0\x01\xff",  # not UTF-8
        b"\0\0",  # no tags
        b"\0\0\x01",
        b"\0\0\x01\0\x05abcd",
        b"\0\0\x41" + b"\0\0" * 65,
        b"\0\0\xff\xff\xff\xff\xff\x01",
    ],
)
def test_a_malformed_header_is_refused(rest: bytes) -> None:
    bad = sized(struct.pack(">hhi", 0, 9, 1) + rest)
    with pytest.raises(ProtocolError):
        split(bad)
    frames, position = split(frame_of(b"") + bad)
    assert (len(frames), position) == (1, len(frame_of(b"")))


@given(st.binary(max_size=60))
def test_noise_is_refused_or_left(data: bytes) -> None:
    try:
        frames, position = split(data)
    except ProtocolError:
        return
    assert all(4 <= frame.start <= frame.body <= frame.end <= position for frame in frames)
    assert position <= len(data)


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (3, 2), (0, 9), (9, 9)])
def test_positions_outside_the_buffer_are_refused(start: int, end: int) -> None:
    with pytest.raises(IndexError):
        FrameSplitter(FLEXIBLE_SINCE).split(bytes(8), start, end, frame_bytes_max=LIMIT)


@pytest.mark.parametrize("table", [{-1: 0}, {256: 0}, {0: -1}])
def test_a_table_out_of_range_is_refused(table: dict[int, int]) -> None:
    with pytest.raises(ValueError, match="flexible"):
        FrameSplitter(table)


# Produce.

VERSIONS = range(14)


@st.composite
def produce_requests(draw: st.DrawFn, version: int) -> ProduceRequest:
    partitions = st.builds(
        lambda index, records: PartitionProduceData(index=index, records=records),
        st.integers(-(2**31), 2**31 - 1),
        st.none() | st.binary(max_size=40),
    )
    topics = st.builds(
        lambda name, topic_id, data: TopicProduceData(
            name=name if version < 13 else "",
            topic_id=topic_id if version >= 13 else bytes(16),
            partition_data=tuple(data),
        ),
        st.text(max_size=20),
        st.binary(min_size=16, max_size=16),
        st.lists(partitions, max_size=4),
    )
    return ProduceRequest(
        transactional_id=draw(st.none() | st.text(max_size=10)) if version >= 3 else None,
        acks=draw(st.integers(-(2**15), 2**15 - 1)),
        timeout_ms=draw(st.integers(-(2**31), 2**31 - 1)),
        topic_data=tuple(draw(st.lists(topics, max_size=4))),
    )


def as_message(data: bytes, produce: Produce) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=produce.transactional_id,
        acks=produce.acks,
        timeout_ms=produce.timeout_ms,
        topic_data=tuple(
            TopicProduceData(
                name=topic.name or "",
                topic_id=topic.topic_id or bytes(16),
                partition_data=tuple(
                    PartitionProduceData(
                        index=part.index,
                        records=None if part.is_null else data[part.start : part.end],
                    )
                    for part in topic.partitions
                ),
            )
            for topic in produce.topics
        ),
    )


def parse(data: bytes) -> ProduceRequest:
    [frame], _ = split(data)
    return as_message(data, parse_produce(data, frame))


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 3)
def test_produce_is_read_as_the_codec_reads_it(version: int, data: st.DataObject) -> None:
    body = data.draw(produce_requests(version)).encode(version)
    assert parse(frame_of(body, version=version)) == ProduceRequest.decode(body, version)


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 3)
def test_damaged_produce_is_refused_where_the_codec_refuses_it(
    version: int, data: st.DataObject
) -> None:
    body = bytearray(data.draw(produce_requests(version)).encode(version))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        change = data.draw(st.sampled_from(["set", "insert", "cut"]))
        byte = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
        if change == "set":
            body[place : place + 1] = [byte]
        elif change == "insert":
            body.insert(place, byte)
        else:
            del body[place:]
    try:
        expected = ProduceRequest.decode(bytes(body), version)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            parse(frame_of(bytes(body), version=version))
    else:
        assert parse(frame_of(bytes(body), version=version)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_produce_that_is_cut_off_or_goes_on_is_refused(version: int) -> None:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="topic" if version < 13 else "",
                partition_data=[
                    PartitionProduceData(index=1, records=b"records"),
                    PartitionProduceData(index=2, records=None),
                ],
            )
        ],
    )
    body = request.encode(version)
    assert parse(frame_of(body, version=version)).topic_data[0].partition_data[1].records is None
    for size in range(len(body)):
        with pytest.raises(ProtocolError):
            parse(frame_of(body[:size], version=version))
    with pytest.raises(ProtocolError, match="left over"):
        parse(frame_of(body + b"\0", version=version))


def test_unknown_tags_are_skipped_everywhere() -> None:
    tags = b"\x01\x09\x02ab"
    partition = struct.pack(">i", 3) + b"\x04abc" + tags
    topic = b"\x02t" + b"\x02" + partition + tags
    body = b"\x00" + struct.pack(">hi", 1, 500) + b"\x02" + topic + tags
    request = parse(frame_of(body, version=9))
    assert request.topic_data[0].partition_data[0].records == b"abc"
    assert request == ProduceRequest.decode(body, 9)


@pytest.mark.parametrize("count", [2**31 - 1, 100_000_000, 1000])
def test_counts_beyond_the_bytes_left_are_refused(count: int) -> None:
    head = struct.pack(">hhi", -1, 1, 500)
    with pytest.raises(ProtocolError, match="cannot be in"):
        parse(frame_of(head + struct.pack(">i", count), version=3))
    topic = struct.pack(">ih1s", 1, 1, b"t")
    with pytest.raises(ProtocolError, match="cannot be in"):
        parse(frame_of(head + topic + struct.pack(">i", count), version=3))


def test_only_produce_is_parsed() -> None:
    for api_key, version in ((1, 12), (0, 14), (0, -1)):
        [frame], _ = split(frame_of(b"", api_key=api_key, version=version))
        with pytest.raises(ProtocolError, match="not a Produce request"):
            parse_produce(b"", frame)


def test_a_frame_of_another_buffer_is_refused() -> None:
    data = frame_of(b"x" * 50)
    [frame], _ = split(data)
    with pytest.raises(IndexError):
        parse_produce(data[:40], frame)


# The answer to Produce.

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=settings.default.max_examples // 3)
@given(
    name=st.text(max_size=300) | st.just("n" * 32_767),
    topic_id=st.binary(min_size=16, max_size=16),
    correlation_id=INT32,
    index=INT32,
    numbers=st.tuples(INT64, INT64, INT64),
)
def test_an_answer_is_what_the_codec_makes_of_it(
    version: int,
    name: str,
    topic_id: bytes,
    correlation_id: int,
    index: int,
    numbers: tuple[int, int, int],
) -> None:
    topic_fields = {"name": name} if version < 13 else {"topic_id": topic_id}
    partition = PartitionProduceData(index=index, records=b"records")
    request = ProduceRequest(
        topic_data=[TopicProduceData(partition_data=[partition], **topic_fields)]
    )
    data = frame_of(request.encode(version), version=version)
    [frame], _ = split(data)
    (topic,) = parse_produce(data, frame).topics
    base_offset, append_time_ms, log_start = numbers
    row = PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=log_start,
    )
    response = ProduceResponse(
        responses=[TopicProduceResponse(partition_responses=[row], **topic_fields)]
    )
    expected = b"".join(encode_response(response, version, correlation_id=correlation_id))
    assert encode_produced(version, correlation_id, topic, *numbers) == expected


def test_only_an_answer_that_there_is_can_be_made() -> None:
    two = [PartitionProduceData(index=each, records=b"") for each in (1, 2)]
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=two)])
    [frame], _ = split(data := frame_of(request.encode(9)))
    (topic,) = parse_produce(data, frame).topics
    with pytest.raises(ValueError, match="too many values"):
        encode_produced(9, 1, topic, 0, 0, 0)
    with pytest.raises(ValueError, match="no version 14"):
        encode_produced(14, 1, topic, 0, 0, 0)
    topic.partitions.pop()
    with pytest.raises(TypeError, match="no topic id"):
        encode_produced(13, 1, topic, 0, 0, 0)
