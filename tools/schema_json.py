"""Kafka's message schemas as values: parsed from JSON, the same message of two releases merged."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tools.kafka_jars import Json

VERSIONS_MAX = 100  # what "3+" is cut to; no message comes near it

Versions = frozenset[int]


@dataclass
class FieldSpec:
    """One field and the versions that have it."""

    name: str
    type: str
    is_array: bool
    struct: "StructSpec | None"
    present: Versions
    nullable: Versions
    tag: int | None
    default: str | None
    ignorable: bool
    never_flexible: bool


@dataclass
class StructSpec:
    """A named group of fields and the versions that use it."""

    name: str
    present: Versions
    fields: list[FieldSpec]


@dataclass
class MessageSpec:
    """A request, a response, a header or a stored record."""

    body: StructSpec
    kind: str
    api_key: int | None
    flexible: int | None
    listeners: tuple[str, ...] = ()
    is_last_unstable: bool = False
    legacy: Versions = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        """Kafka's name, for instance ProduceRequest."""
        return self.body.name

    @property
    def first(self) -> int:
        """The oldest version."""
        return min(self.body.present)

    @property
    def last(self) -> int:
        """The newest version."""
        return max(self.body.present)


def parse_versions(text: str) -> Versions:
    """Parse "none", "3", "1-4" or "2+"."""
    if text == "none":
        return frozenset()
    first, separator, last = re.fullmatch(r"(\d+)([-+]?)(\d*)", text).groups()  # type: ignore[union-attr]
    end = {"": int(first), "+": VERSIONS_MAX, "-": int(last or 0)}[separator]
    return frozenset(range(int(first), end + 1))


def parse_message(schema: Json, versions: Versions | None = None) -> MessageSpec:
    """Parse a message, of which only `versions` count (all, unless told)."""
    present = parse_versions(schema["validVersions"])
    if versions is not None:
        present &= versions
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    flexible = parse_versions(schema["flexibleVersions"])
    assert not flexible or VERSIONS_MAX in flexible
    return MessageSpec(
        body=_parse_struct(schema["name"], schema["fields"], present, common),
        kind=schema["type"],
        api_key=schema.get("apiKey"),
        flexible=min(flexible) if flexible & present else None,
        listeners=tuple(sorted(set(schema.get("listeners", ())) - {"zkBroker"})),
        is_last_unstable=schema.get("latestVersionUnstable", False),
    )


def merge_messages(old: MessageSpec, new: MessageSpec) -> MessageSpec:
    """Merge an older release's versions of a message into `new`, which has the later ones."""
    assert old.last + 1 == new.first, new.name
    assert old.flexible is None
    assert old.api_key == new.api_key
    body = _merge_structs(old.body, new.body)
    _unify_repeated(body)
    return MessageSpec(
        body=body,
        kind=new.kind,
        api_key=new.api_key,
        flexible=new.flexible,
        listeners=new.listeners,
        is_last_unstable=new.is_last_unstable,
        legacy=old.body.present,
    )


def shape(struct: StructSpec, version: int) -> list[object]:
    """Return what `version` of a struct looks like on the wire, to compare two releases."""
    return [
        (
            *(spec.name, spec.type if not spec.struct else "", spec.is_array, spec.tag),
            version in spec.nullable,
            shape(spec.struct, version) if spec.struct else None,
        )
        for spec in struct.fields
        if version in spec.present
    ]


def structs(struct: StructSpec) -> Iterator[StructSpec]:
    """Yield the structs inside `struct`, each after those that it needs; some more than once."""
    for spec in struct.fields:
        if spec.struct:
            yield from structs(spec.struct)
            yield spec.struct


def _parse_struct(
    name: str, fields: Iterable[Json], present: Versions, common: dict[str, list[Json]]
) -> StructSpec:
    parsed = (_parse_field(spec, present, common) for spec in fields)
    struct = StructSpec(name, present, [spec for spec in parsed if spec.present])
    _unify_repeated(struct)
    return struct


def _parse_field(spec: Json, parent: Versions, common: dict[str, list[Json]]) -> FieldSpec:
    tagged = parse_versions(spec.get("taggedVersions", "none"))
    present = parse_versions(spec.get("versions") or spec["taggedVersions"]) & parent
    # One tag number for all versions is what our declarations can say.
    assert not tagged & present or present <= tagged, spec["name"]
    type_ = spec["type"].removeprefix("[]")
    inner = spec.get("fields") or common.get(type_)
    default = spec.get("default")
    return FieldSpec(
        name=spec["name"],
        type=type_,
        is_array=spec["type"].startswith("[]"),
        struct=_parse_struct(type_, inner, present, common) if inner else None,
        present=present,
        nullable=parse_versions(spec.get("nullableVersions", "none")) & present,
        tag=int(spec["tag"]) if tagged & present else None,
        # Kafka's generator takes a JSON null for "no default given": only "null" is a default.
        default=None if default in (None, "") else str(default).lower(),
        ignorable=spec.get("ignorable", False),
        never_flexible=spec.get("flexibleVersions") == "none",
    )


def _unify_repeated(struct: StructSpec) -> None:
    """Make a struct that is used in several places one struct, with the versions of all uses."""
    known: dict[str, StructSpec] = {}
    for inner in structs(struct):
        known[inner.name] = (
            _merge_structs(known[inner.name], inner) if inner.name in known else inner
        )
    for owner in (struct, *known.values()):
        for spec in owner.fields:
            if spec.struct:
                spec.struct = known[spec.struct.name]


def _merge_structs(old: StructSpec, new: StructSpec) -> StructSpec:
    theirs = {spec.name: spec for spec in old.fields}
    ours = {spec.name: spec for spec in new.fields}
    names = _merge_order([*theirs], [*ours])
    return StructSpec(
        name=new.name,
        present=old.present | new.present,
        fields=[
            _merge_fields(theirs[name], ours[name])
            if name in theirs and name in ours
            else ours.get(name) or theirs[name]
            for name in names
        ],
    )


def _merge_fields(old: FieldSpec, new: FieldSpec) -> FieldSpec:
    assert (old.type, old.is_array, old.tag) == (new.type, new.is_array, new.tag), new.name
    assert old.default == new.default, (new.name, old.default, new.default)
    assert bool(old.struct) == bool(new.struct), new.name
    return FieldSpec(
        name=new.name,
        type=new.type,
        is_array=new.is_array,
        struct=_merge_structs(old.struct, new.struct) if old.struct and new.struct else None,
        present=old.present | new.present,
        nullable=old.nullable | new.nullable,
        tag=new.tag,
        default=new.default,
        ignorable=old.ignorable or new.ignorable,
        never_flexible=new.never_flexible,
    )


def _merge_order(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Merge two orders of names into one in which both hold."""
    merged = [*new]
    place = 0
    for name in old:
        if name in merged:
            assert merged.index(name) >= place, f"{name} moved"
            place = merged.index(name) + 1
        else:
            merged.insert(place, name)
            place += 1
    return merged


def span(versions: Versions) -> tuple[int, int]:
    """Return the first and the last of `versions`, which follow each other without a gap."""
    ordered = sorted(versions)
    assert all(after == before + 1 for before, after in pairwise(ordered)), ordered
    return ordered[0], ordered[-1]
