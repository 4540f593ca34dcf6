"""The declaration language: one class per message, versions on its fields.

    class NodeEndpoint(Struct):
        node_id: int = field(int32)
        rack: str | None = field(string, since=2, nullable=2, default=None)

    class WhoRequest(Message, api_key=99, versions=(0, 3), flexible=1):
        nodes: Sequence[NodeEndpoint] = field(Array(NodeEndpoint))

The annotation is for people and the type checker, `field` is for the codec. A version of a message
is compiled to a plan (moldau._native.codec) when it is first encoded or decoded. Every field has a
default and is set by keyword. A field that the version at hand does not have decodes to its
default; encoding another value than the default then fails unless the field is `ignorable`.
"""

from typing import Any, ClassVar, Self, TypeAlias, dataclass_transform

from moldau._native.codec import Plan

Buffer: TypeAlias = bytes | bytearray | memoryview
Uuid: TypeAlias = bytes
"""Sixteen bytes, as on the wire."""

ZERO_UUID: Uuid = bytes(16)
VERSION_MAX = 0x7FFF
NEVER = VERSION_MAX + 1


class Type:
    """A primitive of the wire format."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: object) -> None:
        self.name = name
        self.default = default

    def __repr__(self) -> str:
        return self.name


boolean = Type("boolean", default=False)
int8 = Type("int8", 0)
int16 = Type("int16", 0)
uint16 = Type("uint16", 0)
int32 = Type("int32", 0)
uint32 = Type("uint32", 0)
int64 = Type("int64", 0)
float64 = Type("float64", 0.0)
uuid = Type("uuid", ZERO_UUID)
string = Type("string", "")
# The client id in request header v2 keeps its 16-bit length although the header is flexible.
legacy_string = Type("legacy_string", "")
blob = Type("blob", b"")
# Record batches: a view of the request on the way in, sent by reference on the way out.
records = Type("records", None)


class Array:
    """A sequence of primitives or structs; decodes to a tuple."""

    __slots__ = ("of",)
    default: ClassVar[tuple[()]] = ()

    def __init__(self, of: "Type | type[Struct]") -> None:
        self.of = of

    def __repr__(self) -> str:
        return f"Array({self.of!r})"


FieldType: TypeAlias = "Type | Array | type[Struct]"


class Field:
    """One field: what it is, in which versions it exists, how it is written there."""

    __slots__ = ("default", "ignorable", "name", "nullable", "since", "tag", "type", "until")

    def __init__(
        self,
        type_: FieldType,
        since: int,
        until: int,
        nullable: int,
        tag: int | None,
        default: object,
        *,
        ignorable: bool,
    ) -> None:
        self.name = ""
        self.type = type_
        self.since = since
        self.until = until
        self.nullable = nullable
        self.tag = tag
        self.default = default
        self.ignorable = ignorable

    def __repr__(self) -> str:
        return f"<field {self.name}: {self.type!r} v{self.since}-v{self.until}>"

    @property
    def default_is_fresh(self) -> bool:
        """Whether the default is a struct with all its defaults, made anew each time."""
        return self.default is ... and isinstance(self.type, type)


def field(
    type_: FieldType,
    *,
    since: int = 0,
    until: int = VERSION_MAX,
    nullable: int = NEVER,
    tag: int | None = None,
    default: object = ...,
    ignorable: bool = False,
) -> Any:
    """Declare a field.

    `since` and `until` are the first and the last version that have it, `nullable` the first
    version in which it may be null, `tag` its number when it is a tagged field.
    """
    if default is ... and not isinstance(type_, type):
        default = type_.default
    return Field(type_, since, until, nullable, tag, default, ignorable=ignorable)


@dataclass_transform(kw_only_default=True)
class _StructMeta(type):
    """Turns declared fields into slots, so that an instance is as small as Python allows."""

    _fields: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: object
    ) -> "_StructMeta":
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, declared in fields.items():
            declared.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace["__match_args__"] = ()
        namespace["_fields"] = tuple(fields.values())
        return super().__new__(mcs, name, bases, namespace, **options)


class Struct(metaclass=_StructMeta):
    """A group of fields inside a message."""

    _fields: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: object) -> None:
        # Compiled when the first instance is made: most messages are never built by hand.
        _compile_init(type(self))
        type(self).__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _comparable(getattr(self, f.name)) == _comparable(getattr(other, f.name))
            for f in self._fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self._fields)
        return f"{type(self).__name__}({values})"


def _comparable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _compile_init(cls: type[Struct]) -> None:
    """Give `cls` an `__init__` with one keyword per field, as `dataclass` does."""
    names: dict[str, Any] = {}
    parameters, body = [], []
    for number, f in enumerate(cls._fields):
        parameters.append(f"{f.name}=default{number}")
        if f.default_is_fresh:
            names |= {f"default{number}": ..., f"type{number}": f.type}
            fresh = f"type{number}() if {f.name} is ... else {f.name}"
            body.append(f"    self.{f.name} = {fresh}")
        else:
            names[f"default{number}"] = f.default
            body.append(f"    self.{f.name} = {f.name}")
    star = "*, " if parameters else ""
    head = f"def __init__(self, {star}{', '.join(parameters)}):"
    source = "\n".join([head, *(body or ["    pass"])])
    exec(compile(source, f"<{cls.__name__}.__init__>", "exec"), names)
    cls.__init__ = names["__init__"]  # type: ignore[method-assign]


class Message(Struct):
    """A whole request, response, header or stored record."""

    _api_key: ClassVar[int | None]
    _versions: ClassVar[tuple[int, int]]
    _flexible: ClassVar[int]
    _plans: ClassVar[dict[int, Plan]]

    def __init_subclass__(
        cls,
        *,
        versions: tuple[int, int],
        flexible: int = NEVER,
        api_key: int | None = None,
    ) -> None:
        super().__init_subclass__()
        cls._api_key = api_key
        cls._versions = versions
        cls._flexible = flexible
        cls._plans = {}

    @classmethod
    def plan(cls, version: int) -> Plan:
        """Return the compiled codec of one version; hot paths keep it."""
        plans = cls._plans
        if version not in plans:
            first, last = cls._versions
            if not first <= version <= last:
                raise ValueError(f"{cls.__name__} has versions {first} to {last}, not {version}")
            plans[version] = Plan(cls, version, flexible=version >= cls._flexible)
        return plans[version]

    @classmethod
    def decode(cls, data: Buffer, version: int) -> Self:
        """Decode `data`, all of it; `ProtocolError` if it is malformed or too long."""
        message: Self = cls.plan(version).decode(data)
        return message

    def encode(self, version: int) -> bytes:
        """Encode to one piece of bytes; `ProtocolError` if a value does not fit its field."""
        return self.plan(version).encode(self)
