"""Random messages and random damage, from a seeded generator: quick enough for a million frames."""

import random
import string

from moldau.protocol.schema import Array, FieldType, Struct, Type

BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
LETTERS = string.ascii_letters + "éč日🙂"
# Bytes that mean something: null, empty, the ends of ranges, varints that go on.
TELLING = (b"\x00", b"\x01", b"\x02", b"\x40", b"\x41", b"\x7f", b"\x80", b"\xfe", b"\xff")
TELLING_LONG = (
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff\xff\xff",
    b"\x00\x00\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80",
)


def random_struct(rng: random.Random, cls: type[Struct], version: int) -> Struct:
    """Build an instance whose fields fit the version."""
    values = {}
    for field in cls._fields:
        if not field.since <= version <= field.until:
            continue
        if field.tag is not None and rng.random() < 0.3:
            continue
        if field.nullable <= version and rng.random() < 0.2:
            values[field.name] = None
        else:
            values[field.name] = _random_value(rng, field.type, version)
    return cls(**values)


def _random_value(rng: random.Random, type_: FieldType, version: int) -> object:
    if isinstance(type_, Array):
        return tuple(_random_value(rng, type_.of, version) for _ in range(rng.randrange(3)))
    if isinstance(type_, Type):
        return _random_primitive(rng, type_.name)
    return random_struct(rng, type_, version)


def _random_primitive(rng: random.Random, name: str) -> object:
    match name:
        case "boolean":
            value: object = rng.random() < 0.5
        case "float64":
            value = rng.uniform(-1e9, 1e9)
        case "uuid":
            value = rng.randbytes(16)
        case "string" | "legacy_string":
            value = "".join(rng.choices(LETTERS, k=rng.randrange(10)))
        case "blob" | "records":
            value = rng.randbytes(rng.choice((0, 3, 200)))
        case _:
            number = rng.getrandbits(rng.randint(1, BITS[name]))
            is_negative = name[0] == "i" and number >> (BITS[name] - 1)
            value = number - (1 << BITS[name]) if is_negative else number
    return value


def damage(rng: random.Random, data: bytes) -> bytes:
    """Truncate or change `data`, in one place or several."""
    if rng.random() < 0.2:
        return data[: rng.randrange(len(data) + 1)]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at : at + 1] = rng.choice(TELLING)
            case 2:
                piece = rng.choice(TELLING_LONG)
                changed[at : at + len(piece)] = piece
            case 3:
                changed[at:at] = rng.randbytes(rng.randrange(1, 6))
            case 4:
                del changed[at : at + rng.randrange(1, 6)]
            case _:
                start = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[start : start + rng.randrange(1, 40)]
    return bytes(changed)
