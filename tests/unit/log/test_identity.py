from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import TopicId
from moldau.log.errors import MalformedFileError
from moldau.log.identity import (
    MetaProperties,
    parse_meta_properties,
    parse_partition_metadata,
    render_meta_properties,
    render_partition_metadata,
)

uuids = st.binary(min_size=16, max_size=16)


@given(uuids.filter(any))
def test_partition_metadata_round_trip(uuid: bytes) -> None:
    topic_id = TopicId(uuid)
    assert parse_partition_metadata("x", render_partition_metadata(topic_id)) == topic_id


def test_partition_metadata_as_kafka_writes_it() -> None:
    data = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert render_partition_metadata(TopicId(bytes(15) + b"\x01")) == data
    assert parse_partition_metadata("x", b"version: 3\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n") == (
        bytes(15) + b"\x01"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x:1: '' instead of 'version: ...'"),
        (b"version: -1\n", "x:1: version -1 is not known"),
        (b"version: one\n", "x:1: 'one' is not a number"),
        (b"version: 0\n", "x:2: '' instead of 'topic_id: ...'"),
        (b"version: 0\ntopic_id: AAAA", "x:2: 'AAAA' is not a uuid in base64url"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "x:2: the topic id is zero"),
    ],
)
def test_malformed_partition_metadata(data: bytes, message: str) -> None:
    with pytest.raises(MalformedFileError) as caught:
        parse_partition_metadata("x", data)
    assert str(caught.value) == message


printable = st.text(st.characters(min_codepoint=32, max_codepoint=126))


@given(st.builds(MetaProperties, printable, st.integers(0, 2**31 - 1), st.one_of(st.none(), uuids)))
def test_meta_properties_round_trip(properties: MetaProperties) -> None:
    assert parse_meta_properties("x", render_meta_properties(properties)) == properties


def test_meta_properties_as_kafka_writes_them() -> None:
    data = (
        b"#\n#Sat Nov 15 22:06:11 UTC 2025\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\\=\\=\n"
        b"directory.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\nversion=1\n"
    )
    expected = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg==", 1, bytes(15) + b"\x01")
    assert parse_meta_properties("x", data) == expected
    assert render_meta_properties(expected) == data[data.index(b"cluster") :]


def test_meta_properties_as_java_may_write_them() -> None:
    data = b"! old\n  version : 1\nnode.id 7\n\ncluster.id=a\\u0062\\\n   c\\:\\td\\\\\n#x=1\\\n"
    assert parse_meta_properties("x", data) == MetaProperties("abc:\td\\", 7)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: version 0 instead of 1"),
        (b"version=0\nbroker.id=1\n", "x:1: version 0 instead of 1"),
        (b"version=1\nnode.id=1\n", "x: cluster.id is missing"),
        (b"version=1\ncluster.id=a\n", "x: node.id is missing"),
        (b"version=1\ncluster.id=a\nnode.id=one\n", "x:3: 'one' is not a number"),
        (b"version=1\ncluster.id=a\nnode.id=1\ndirectory.id=a\n", "x:4: 'a' is not a uuid"),
    ],
)
def test_malformed_meta_properties(data: bytes, message: str) -> None:
    with pytest.raises(MalformedFileError) as caught:
        parse_meta_properties("x", data)
    assert str(caught.value).startswith(message)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_partition_metadata, parse_meta_properties):
        for prefix in (b"", b"version: 0\n", b"version=1\ncluster.id="):
            with suppress(MalformedFileError):
                parse("x", prefix + data)
