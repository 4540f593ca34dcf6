"""Whose a log directory and a partition are: `meta.properties` and `partition.metadata`."""

import re
from dataclasses import dataclass
from typing import Final

from moldau.kernel.ids import TopicId
from moldau.kernel.uuid_text import uuid_from_text, uuid_to_text
from moldau.log.errors import MalformedFileError

META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PROPERTY = re.compile(r"((?:[^\\:=\s]|\\.)*)\s*[:=]?\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Which cluster and node a log directory belongs to, and its own id."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None = None


def render_partition_metadata(topic_id: TopicId) -> bytes:
    """Return a partition.metadata file."""
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def parse_partition_metadata(path: str, data: bytes) -> TopicId:
    """Return the id of the topic that the partition is of."""
    lines = data.decode("latin-1").splitlines()
    version = _int(path, 1, _after(path, lines, 1, "version"))
    # A newer version keeps the topic id where it is: Kafka promises that for downgrades.
    if version < 0:
        raise MalformedFileError(path, 1, f"version {version} is not known")
    topic_id = _uuid(path, 2, _after(path, lines, 2, "topic_id"))
    if not any(topic_id):
        raise MalformedFileError(path, 2, "the topic id is zero")
    return TopicId(topic_id)


def render_meta_properties(properties: MetaProperties) -> bytes:
    """Return a meta.properties file of version 1; the cluster id is printable ASCII."""
    lines = [f"cluster.id={_escape(properties.cluster_id)}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_to_text(properties.directory_id)}")
    lines += [f"node.id={properties.node_id}", "version=1", ""]
    return "\n".join(lines).encode("ascii")


def parse_meta_properties(path: str, data: bytes) -> MetaProperties:
    """Read a meta.properties file of version 1, written by a node with KRaft."""
    found = _properties(data.decode("latin-1"))
    line, version = found.get("version", (0, "0"))
    if version != "1":
        raise MalformedFileError(path, line, f"version {version} instead of 1")
    for name in ("cluster.id", "node.id"):
        if name not in found:
            raise MalformedFileError(path, 0, f"{name} is missing")
    directory_id = found.get("directory.id")
    return MetaProperties(
        cluster_id=found["cluster.id"][1],
        node_id=_int(path, *found["node.id"]),
        directory_id=None if directory_id is None else _uuid(path, *directory_id),
    )


def _properties(text: str) -> dict[str, tuple[int, str]]:
    """Read a file in the format of Java's Properties: name -> (line, value)."""
    found: dict[str, tuple[int, str]] = {}
    joined = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = joined + raw.lstrip(" \t\f")
        joined = ""
        if not line or line[0] in "#!":
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = line[:-1]  # a backslash at its end carries the line on
            continue
        match = _PROPERTY.fullmatch(line)
        assert match is not None, "the pattern takes every line"
        found[_unescape(match[1])] = number, _unescape(match[2])
    return found


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(plain, text)


def _escape(text: str) -> str:
    return re.sub(r"([\\:=#!]|^ )", r"\\\1", text)


def _after(path: str, lines: list[str], line: int, name: str) -> str:
    """Return what follows `name:` on that line."""
    text = lines[line - 1] if line <= len(lines) else ""
    found, colon, value = text.partition(":")
    if found != name or not colon:
        raise MalformedFileError(path, line, f"{text[:40]!r} instead of '{name}: ...'")
    return value.strip()


def _int(path: str, line: int, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", text):
        raise MalformedFileError(path, line, f"{text[:40]!r} is not a number")
    return int(text)


def _uuid(path: str, line: int, text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError as error:
        raise MalformedFileError(path, line, str(error)) from None
