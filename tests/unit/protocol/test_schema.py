"""What declarations mean: defaults, versions, tags, nulls, and pieces by reference."""

import pytest
from hypothesis import given

from moldau._native.codec import encode_frame
from moldau.kernel.errors import ProtocolError
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.schema import Message, Struct
from tests.reference import codec as reference
from tests.strategies import SETTINGS, structs
from tests.unit.protocol.samples import Batches, Inner, Many, One, Sample, Tagged

LARGE = bytes(10_000)


def test_every_field_has_a_default() -> None:
    sample = Sample()
    assert (sample.number, sample.name, sample.numbers, sample.identity) == (0, "", (), bytes(16))
    assert sample.inner == Inner(number=-1, later=0, label=None)


def test_struct_defaults_are_not_shared() -> None:
    assert Sample().inner is not Sample().inner
    decoded = Sample.decode(Sample().encode(2), 2)
    assert decoded.old_inner is not Sample.decode(Sample().encode(2), 2).old_inner


def test_equality() -> None:
    assert Many(numbers=[1, 2]) == Many(numbers=(1, 2))
    assert Many(numbers=[1]) != Many(numbers=[2])
    assert Batches(batches=b"x") == Batches(batches=memoryview(b"x"))
    assert One() != Tagged()


def test_repr_names_the_fields() -> None:
    assert repr(Inner(number=3)) == "Inner(number=3, later=0, label=None)"


def test_unknown_keyword() -> None:
    with pytest.raises(TypeError, match="nmuber"):
        Inner(nmuber=3)  # type: ignore[call-arg]


def test_unknown_version() -> None:
    with pytest.raises(ValueError, match="Sample has versions 0 to 2, not 3"):
        Sample().encode(3)


def test_plans_are_compiled_once() -> None:
    assert Sample.plan(1) is Sample.plan(1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_both_codecs_agree(version: int) -> None:
    @SETTINGS
    @given(structs(Sample, version))
    def agree(message: Struct) -> None:
        assert isinstance(message, Sample)
        encoded = message.encode(version)
        assert encoded == reference.encode(message, version, flexible=version >= 1)
        assert Sample.decode(encoded, version) == message
        assert reference.decode(Sample, encoded, version, flexible=version >= 1) == message

    agree()


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: memoryview(b"-" + data)[1:]])
def test_decodes_from_any_buffer(kind: type) -> None:
    sample = Sample(name="n", batches=b"records")
    assert Sample.decode(kind(sample.encode(1)), 1) == sample


def test_decodes_from_a_view_of_wider_items() -> None:
    encoded = Batches(batches=b"abcd").encode(0)
    decoded = Batches.decode(memoryview(encoded).cast("i"), 0)
    assert decoded.batches == b"abcd"


def test_decode_from_a_position() -> None:
    data = b"junk" + One(text="a").encode(0) + One(text="bc").encode(0)
    first, position = One.plan(0).decode_from(data, 4)
    second, end = One.plan(0).decode_from(data, position)
    assert (first, second, end) == (One(text="a"), One(text="bc"), len(data))


def test_records_are_views_of_what_was_decoded() -> None:
    data = bytearray(Batches(batches=b"abc").encode(0))
    decoded = Batches.decode(data, 0)
    data[4:7] = b"xyz"
    assert decoded.batches == b"xyz"
    assert isinstance(decoded.batches, memoryview)


def test_arrays_decode_to_tuples_and_blobs_to_bytes() -> None:
    decoded = Sample.decode(bytearray(Sample(content=b"c", numbers=[1]).encode(0)), 0)
    assert decoded.numbers == (1,)
    assert type(decoded.numbers) is tuple
    assert type(decoded.content) is bytes


def test_large_records_leave_by_reference() -> None:
    pieces = Batches.plan(1).encode_chunks(Batches(batches=LARGE))
    assert [len(piece) for piece in pieces] == [2, len(LARGE), 1]
    assert pieces[1] is LARGE


def test_a_bytearray_cannot_be_resized_before_it_is_sent() -> None:
    records = bytearray(LARGE)
    pieces = Batches.plan(1).encode_chunks(Batches(batches=records))
    with pytest.raises(BufferError):
        records.append(0)
    assert sum(len(piece) for piece in pieces) == 2 + len(LARGE) + 1


def test_small_records_are_copied() -> None:
    assert len(Batches.plan(1).encode_chunks(Batches(batches=b"small"))) == 1


def test_frame() -> None:
    header = RequestHeader(request_api_key=999, correlation_id=7, client_id="me")
    pieces = encode_frame(RequestHeader.plan(2), header, Batches.plan(1), Batches(batches=LARGE))
    frame = b"".join(pieces)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    decoded, position = RequestHeader.plan(2).decode_from(frame, 4)
    assert decoded == header
    assert Batches.plan(1).decode_from(frame, position) == (Batches(batches=LARGE), len(frame))
    assert LARGE in pieces


def test_unknown_tagged_fields_are_skipped() -> None:
    assert Tagged.decode(bytes.fromhex("02 03 04 00000007 8f4e 03 616263"), 1) == Tagged(number=7)


def test_tagged_fields_come_in_any_order_and_the_last_wins() -> None:
    # Kafka writes them in order but does not insist on it, nor on meeting each only once.
    data = bytes.fromhex("03 09 00 03 04 00000001 03 04 00000002")
    assert Tagged.decode(data, 1) == Tagged(number=2)


def test_tagged_fields_are_written_in_order_when_not_at_their_default() -> None:
    sample = Sample(tagged_number=6, tagged_inner=Inner(number=-1), tagged_content=b"c" * 200)
    encoded = sample.encode(1)
    tail = b"\x02" + b"\x02\x08" + (6).to_bytes(8) + b"\xc8\x01\xca\x01\xc9\x01" + b"c" * 200
    assert encoded.endswith(tail)
    assert encoded == Sample().encode(1)[:-1] + tail


def test_nullable_struct() -> None:
    assert Sample.decode(Sample(maybe_inner=None).encode(0), 0).maybe_inner is None
    present = Sample(maybe_inner=Inner(number=3), tagged_maybe=Inner(number=4))
    assert Sample.decode(present.encode(1), 1) == present


def test_tagged_null_is_written_where_it_is_not_the_default() -> None:
    sample = Sample(tagged_names=None)
    assert sample.encode(1).endswith(b"\x01\x03\x01\x00")
    assert Sample.decode(sample.encode(1), 1) == sample


def test_absent_fields_decode_to_their_defaults() -> None:
    decoded = Sample.decode(Sample().encode(2), 2)
    assert (decoded.old, decoded.old_inner) == (7, Inner())


@pytest.mark.parametrize(
    ("message", "field"),
    [(Sample(old=8), "Sample.old"), (Sample(old_inner=Inner(number=3)), "Sample.old_inner")],
)
def test_absent_fields_cannot_be_encoded(message: Message, field: str) -> None:
    with pytest.raises(ProtocolError, match=f"Sample v1: {field} is not in this version"):
        message.encode(1)


def test_absent_field_in_an_element_cannot_be_encoded() -> None:
    with pytest.raises(ProtocolError, match=r"Inner\.later is not in this version"):
        Sample(inners=[Inner(later=3)]).encode(1)


def test_ignorable_fields_are_left_out() -> None:
    assert Sample(ignored=3).encode(1) == Sample().encode(1)
    assert Sample(ignored=3).encode(2) != Sample().encode(2)
