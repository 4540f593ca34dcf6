"""Values that do not fit their fields: each is refused, and the field is named."""

import enum

import pytest

from moldau.kernel.errors import ProtocolError
from moldau.protocol.schema import Message
from tests.unit.protocol.samples import Batches, Inner, Many, One, Sample

BOUNDS = {
    "tiny": (-(2**7), 2**7 - 1),
    "small": (-(2**15), 2**15 - 1),
    "port": (0, 2**16 - 1),
    "number": (-(2**31), 2**31 - 1),
    "mask": (0, 2**32 - 1),
    "big": (-(2**63), 2**63 - 1),
}


def refuse(message: Message, match: str, version: int = 1) -> None:
    with pytest.raises(ProtocolError, match=match):
        message.encode(version)


@pytest.mark.parametrize("field", BOUNDS)
def test_integers_have_bounds(field: str) -> None:
    low, high = BOUNDS[field]
    for inside in (low, high):
        message = Sample(**{field: inside})
        assert Sample.decode(message.encode(0), 0) == message
    for outside in (low - 1, high + 1, 10**5000):
        refuse(Sample(**{field: outside}), f"Sample v0: Sample.{field} is outside of {low} to", 0)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("value", ["text", 1.5, None, b"bytes", [1], object()])
def test_integers_are_ints(value: object, version: int) -> None:
    name = type(value).__name__
    refuse(Sample(number=value), f"Sample.number takes an int, not {name}", version)


def test_enums_are_ints() -> None:
    class Color(enum.IntEnum):
        RED = 3

    assert Sample(number=Color.RED).encode(0) == Sample(number=3).encode(0)


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_booleans_are_bools(value: object) -> None:
    refuse(Sample(flag=value), "Sample.flag takes a bool")


def test_floats() -> None:
    assert Sample(ratio=2).encode(0) == Sample(ratio=2.0).encode(0)
    refuse(Sample(ratio="2"), "Sample.ratio takes a float, not str")
    refuse(Sample(ratio=10**400), "Sample.ratio is an int too large for a float")


def test_uuids_have_sixteen_bytes() -> None:
    refuse(Sample(identity=bytes(15)), "Sample.identity takes 16 bytes, not 15")
    refuse(Sample(identity="0" * 16), "Sample.identity takes bytes, not str")


@pytest.mark.parametrize("version", [0, 1])
def test_none_where_none_may_be(version: int) -> None:
    for field in ("name", "content", "numbers", "inner"):
        refuse(Sample(**{field: None}), f"Sample.{field} cannot be None in this version", version)


def test_none_in_an_array() -> None:
    refuse(Sample(names=["a", None]), "Sample.names cannot be None")
    refuse(Sample(inners=[None]), "Sample.inners cannot be None")


@pytest.mark.parametrize("version", [0, 1])
def test_strings_have_a_limit(version: int) -> None:
    One(text="a" * 32767).encode(version)
    refuse(One(text="a" * 32768), "One.text has length 32768, over the limit of 32767", version)
    refuse(One(text="é" * 16384), "One.text has length 32768", version)


def test_surrogates() -> None:
    refuse(One(text="\ud800"), "One.text cannot be UTF-8")


def test_strings_are_strs() -> None:
    refuse(One(text=b"bytes"), "One.text takes a str, not bytes")


def test_blobs_are_buffers() -> None:
    refuse(Sample(content="text"), "Sample.content takes bytes, a bytearray or a memoryview")
    refuse(Batches(batches=[1]), "Batches.batches takes bytes")
    refuse(Sample(content=memoryview(b"abcd")[::2]), "Sample.content cannot be read")


def test_arrays_are_sequences() -> None:
    assert Many(numbers=range(3)).encode(0) == Many(numbers=[0, 1, 2]).encode(0)
    refuse(Many(numbers={1: 2}), "Many.numbers takes a sequence, not dict")
    refuse(Sample(names="abc"), "Sample.names takes a sequence, not str")
    refuse(Many(numbers=iter([1])), "Many.numbers takes a sequence")


def test_structs_are_of_their_class() -> None:
    refuse(Sample(inner=One()), "Sample.inner takes Inner, not One")
    refuse(Sample(inners=[3]), "Sample.inners takes Inner, not int")
    refuse(Sample(tagged_inner=One()), "Sample.tagged_inner takes Inner, not One")


def test_messages_are_of_the_plans_class() -> None:
    with pytest.raises(ProtocolError, match="One v0: the plan takes One, not Many"):
        One.plan(0).encode(Many())


def test_deleted_field() -> None:
    message, inner = One(), Inner()
    del message.text
    refuse(message, "One.text is not set")
    del inner.number
    refuse(Sample(tagged_inner=inner), "Inner.number is not set")


def test_list_that_changes_while_it_is_written() -> None:
    class Spiteful(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            sample.inners.clear()  # type: ignore[attr-defined]
            return False

        __hash__ = str.__hash__

    sample = Sample(inners=[Inner(label=Spiteful("label")) for _ in range(3)])
    assert len(Sample.decode(sample.encode(1), 1).inners) == 3
