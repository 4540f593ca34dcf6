"""The message codec again, slow and readable: what moldau._native.codec must agree with.

It follows the wire format field by field and knows nothing of slots, tables or buffers' addresses.
"""

import struct
from dataclasses import dataclass

from moldau.kernel.errors import ProtocolError
from moldau.protocol.schema import Array, Field, FieldType, Struct, Type

FORMATS = {
    "boolean": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "uuid": "16s",
}
STRING_BYTES_MAX = 0x7FFF
TAGGED_FIELDS_MAX = 64


def is_present(field: Field, version: int) -> bool:
    """Say whether a version has the field."""
    return field.since <= version <= field.until


def default_of(field: Field) -> object:
    """Return what a field is when nobody set it."""
    return field.type() if field.default_is_fresh else field.default  # type: ignore[operator]


def is_default(field: Field, value: object) -> bool:
    """Say whether a value is what the field is anyway."""
    if isinstance(value, list):
        value = tuple(value)
    return value == default_of(field)


@dataclass
class Reader:
    """Takes values from the front of `data`."""

    data: bytes
    version: int
    flexible: bool
    position: int = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.position : self.position + size]
        if len(piece) < size:
            raise ProtocolError(f"{size} bytes needed, {len(piece)} left")
        self.position += size
        return piece

    def unpack(self, format_: str) -> object:
        return struct.unpack(format_, self.take(struct.calcsize(format_)))[0]

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise ProtocolError("varint too long")
        if value > 0xFFFF_FFFF:
            raise ProtocolError("varint over 32 bits")
        return value

    def length(self, format_: str, *, nullable: bool, compact: bool) -> int | None:
        length = self.uvarint() - 1 if compact else self.unpack(format_)
        assert isinstance(length, int)
        if length == -1 and nullable:
            return None
        if length < 0:
            raise ProtocolError(f"length {length}")
        return length

    def primitive(self, type_: Type, *, nullable: bool) -> object:
        if format_ := FORMATS.get(type_.name):
            return self.unpack(format_)
        compact = self.flexible and type_.name != "legacy_string"
        is_string = type_.name in ("string", "legacy_string")
        length = self.length(">h" if is_string else ">i", nullable=nullable, compact=compact)
        if length is None:
            return None
        if not is_string:
            return self.take(length)
        if length > STRING_BYTES_MAX:
            raise ProtocolError(f"a string of {length} bytes")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise ProtocolError("not UTF-8") from None

    def value(self, type_: FieldType, *, nullable: bool = False, tagged: bool = False) -> object:
        if isinstance(type_, Array):
            count = self.length(">i", nullable=nullable, compact=self.flexible)
            if count is None:
                return None
            if count > len(self.data) - self.position:
                raise ProtocolError(f"{count} elements cannot be in the bytes left")
            return tuple(self.value(type_.of) for _ in range(count))
        if isinstance(type_, Type):
            return self.primitive(type_, nullable=nullable)
        if nullable:
            is_null = self.uvarint() == 0 if tagged else self.take(1)[0] >= 0x80
            if is_null:
                return None
        return self.struct(type_)

    def struct(self, cls: type[Struct]) -> Struct:
        values = {}
        for field in cls._fields:
            if field.tag is None and is_present(field, self.version):
                values[field.name] = self.value(field.type, nullable=field.nullable <= self.version)
        if self.flexible:
            values |= self.tagged_fields(cls)
        return cls(**values)

    def tagged_fields(self, cls: type[Struct]) -> dict[str, object]:
        known = {f.tag: f for f in cls._fields if f.tag is not None and is_present(f, self.version)}
        values = {}
        count = self.uvarint()
        if count > TAGGED_FIELDS_MAX:
            raise ProtocolError(f"{count} tagged fields")
        for _ in range(count):
            tag = self.uvarint()
            content = Reader(self.take(self.uvarint()), self.version, flexible=True)
            if field := known.get(tag):
                nullable = field.nullable <= self.version
                values[field.name] = content.value(field.type, nullable=nullable, tagged=True)
                if content.position != len(content.data):
                    raise ProtocolError("a tagged field does not fill its size")
        return values


@dataclass
class Writer:
    """Puts values at the end of `out`."""

    out: bytearray
    version: int
    flexible: bool

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def pack(self, format_: str, value: object) -> None:
        try:
            self.out += struct.pack(format_, value)
        except struct.error as error:
            raise ProtocolError(str(error)) from None

    def length(self, format_: str, length: int | None, *, compact: bool) -> None:
        if compact:
            self.uvarint(0 if length is None else length + 1)
        else:
            self.pack(format_, -1 if length is None else length)

    def primitive(self, type_: Type, value: object, *, nullable: bool) -> None:
        if format_ := FORMATS.get(type_.name):
            return self.pack(format_, value)
        compact = self.flexible and type_.name != "legacy_string"
        is_string = type_.name in ("string", "legacy_string")
        if value is None and not nullable:
            raise ProtocolError("null")
        content = None
        if value is not None:
            content = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
        if is_string and content is not None and len(content) > STRING_BYTES_MAX:
            raise ProtocolError(f"a string of {len(content)} bytes")
        length = None if content is None else len(content)
        self.length(">h" if is_string else ">i", length, compact=compact)
        self.out += content or b""
        return None

    def value(
        self, type_: FieldType, value: object, *, nullable: bool = False, tagged: bool = False
    ) -> None:
        if isinstance(type_, Type):
            return self.primitive(type_, value, nullable=nullable)
        if value is None and not nullable:
            raise ProtocolError("null")
        if isinstance(type_, Array):
            assert isinstance(value, list | tuple | None)
            self.length(">i", None if value is None else len(value), compact=self.flexible)
            for element in value or ():
                self.value(type_.of, element)
            return None
        if nullable:
            null = 0 if tagged else 0xFF
            self.out.append(null if value is None else 1)
        if value is not None:
            assert isinstance(value, type_)
            self.struct(value)
        return None

    def struct(self, instance: Struct) -> None:
        tagged = []
        for field in instance._fields:
            value = getattr(instance, field.name)
            if not is_present(field, self.version):
                if not field.ignorable and not is_default(field, value):
                    raise ProtocolError(f"{field.name} is not in version {self.version}")
            elif field.tag is not None:
                if not is_default(field, value):
                    tagged.append((field.tag, field, value))
            else:
                self.value(field.type, value, nullable=field.nullable <= self.version)
        if self.flexible:
            self.uvarint(len(tagged))
            for tag, field, value in sorted(tagged, key=lambda entry: entry[0]):
                content = Writer(bytearray(), self.version, flexible=True)
                nullable = field.nullable <= self.version
                content.value(field.type, value, nullable=nullable, tagged=True)
                self.uvarint(tag)
                self.uvarint(len(content.out))
                self.out += content.out


def decode(cls: type[Struct], data: bytes, version: int, *, flexible: bool) -> Struct:
    """Decode the whole of `data`."""
    reader = Reader(data, version, flexible)
    message = reader.struct(cls)
    if reader.position != len(data):
        raise ProtocolError(f"{len(data) - reader.position} bytes are left over")
    return message


def encode(message: Struct, version: int, *, flexible: bool) -> bytes:
    """Encode to one piece."""
    writer = Writer(bytearray(), version, flexible)
    writer.struct(message)
    return bytes(writer.out)
