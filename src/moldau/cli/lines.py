"""Lines as records: where headers, key and value are in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moldau.cli.frame import CommandError


class LineRecord(NamedTuple):
    """What a line says."""

    headers: list[tuple[str, bytes | None]]
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How lines are taken apart; bytes stay as they are, whatever their encoding."""

    key_separator: bytes | None = None
    """What stands between key and value; None: there is no key."""
    headers_delimiter: bytes | None = None
    """What stands behind the headers; None: there are none."""
    headers_separator: bytes = b","
    header_key_separator: bytes = b":"
    null_marker: bytes | None = None
    """A key, a value or a header's value that reads so is null."""
    skip_faults: bool = False
    """Whether a line without a separator is a value, and no error."""

    def parse(self, number: int, line: bytes) -> LineRecord:
        """Take a line apart; `CommandError` if it lacks a separator."""
        headers: list[tuple[str, bytes | None]] = []
        key: bytes | None = None
        rest = line
        if self.headers_delimiter is not None:
            part, rest = self._split(number, rest, self.headers_delimiter, "headers delimiter")
            headers = self._headers(number, part or b"")
        if self.key_separator is not None:
            key, rest = self._split(number, rest, self.key_separator, "key separator")
        return LineRecord(headers, self._value(key), self._value(rest))

    def _split(
        self, number: int, line: bytes, separator: bytes, what: str
    ) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(separator)
        if found:
            return before, after
        if self.skip_faults:
            return None, line
        text = line.decode(errors="replace")
        raise CommandError(f"No {what} found on line number {number}: '{text}'")

    def _headers(self, number: int, part: bytes) -> list[tuple[str, bytes | None]]:
        if self.null_marker is not None and part == self.null_marker:
            return []
        headers = []
        for pair in part.split(self.headers_separator) if part else ():
            name, value = self._split(
                number, pair, self.header_key_separator, "header key separator"
            )
            if name is None:
                name, value = pair, b""
            headers.append((name.decode(errors="replace"), self._value(value)))
        return headers

    def _value(self, data: bytes | None) -> bytes | None:
        return None if data == self.null_marker else data

    def records(self, lines: Iterable[bytes]) -> Iterator[LineRecord]:
        """Take all lines apart."""
        for number, line in enumerate(lines, 1):
            yield self.parse(number, line.removesuffix(b"\n").removesuffix(b"\r"))
