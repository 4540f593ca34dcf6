"""A message that uses everything that a declaration can say."""

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Buffer,
    Message,
    Struct,
    Uuid,
    blob,
    boolean,
    field,
    float64,
    int8,
    int16,
    int32,
    int64,
    legacy_string,
    records,
    string,
    uint16,
    uint32,
    uuid,
)


class Inner(Struct):
    number: int = field(int32, default=-1)
    later: int = field(int16, since=2)
    label: str | None = field(string, since=1, nullable=1, tag=0, default=None)


class Sample(Message, api_key=999, versions=(0, 2), flexible=1):
    """Version 0 is not flexible, 1 is, and 2 has a field more."""

    flag: bool = field(boolean)
    tiny: int = field(int8)
    small: int = field(int16)
    port: int = field(uint16)
    number: int = field(int32)
    mask: int = field(uint32)
    big: int = field(int64)
    ratio: float = field(float64)
    identity: Uuid = field(uuid)
    name: str = field(string)
    maybe_name: str | None = field(string, nullable=0)
    client: str | None = field(legacy_string, nullable=0)
    content: bytes = field(blob)
    maybe_content: bytes | None = field(blob, nullable=0)
    numbers: Sequence[int] = field(Array(int32))
    names: Sequence[str] | None = field(Array(string), nullable=0)
    inner: Inner = field(Inner)
    inners: Sequence[Inner] = field(Array(Inner))
    maybe_inner: Inner | None = field(Inner, nullable=0, default=None)
    batches: Buffer | None = field(records, nullable=0)
    old: int = field(int32, until=0, default=7)
    old_inner: Inner = field(Inner, until=0)
    ignored: int = field(int32, since=2, ignorable=True)
    tagged_number: int = field(int64, since=1, tag=2, default=5)
    tagged_inner: Inner = field(Inner, since=1, tag=0)
    tagged_maybe: Inner | None = field(Inner, since=1, nullable=1, tag=1, default=None)
    tagged_names: Sequence[str] | None = field(Array(string), since=1, nullable=1, tag=3)
    tagged_content: bytes = field(blob, since=1, tag=200)


class One(Message, versions=(0, 1), flexible=1):
    """One string, to make hostile bytes by hand."""

    text: str = field(string)


class Many(Message, versions=(0, 1), flexible=1):
    """One array, likewise."""

    numbers: Sequence[int] = field(Array(int32))


class Batches(Message, versions=(0, 1), flexible=1):
    """Records, which may be null, likewise."""

    batches: Buffer | None = field(records, nullable=0)


class Tagged(Message, versions=(1, 1), flexible=1):
    """Nothing but a tagged field, likewise."""

    number: int = field(int32, tag=3)
