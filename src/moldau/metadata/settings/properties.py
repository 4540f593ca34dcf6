"""Java's `.properties` files, as `server.properties` is one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BLANK: Final = " \t\f"

# A key ends at the first separator without a backslash in front; one = or : may stand between.
_PAIR: Final = re.compile(
    r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<letter>.)|$)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A properties file is malformed."""


@dataclass(frozen=True, slots=True)
class Property:
    """A key with its value, and the line on which it begins, counted from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> Iterator[Property]:
    """Walk the properties in the order of the file; of equal keys the last counts."""
    for number, line in _logical_lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None, "every text has a key, empty perhaps, and a value"
        try:
            yield Property(_unescape(match["key"]), _unescape(match["value"]), number)
        except PropertiesError as error:
            raise PropertiesError(f"line {number}: {error}") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines that end with a backslash, and leave out comments and blank ones."""
    pending, begun = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        part = line.lstrip(BLANK)
        if not pending:
            if not part or part[0] in "#!":
                continue
            begun = number
        pending += part
        if (len(part) - len(part.rstrip("\\"))) % 2:
            pending = pending[:-1]
        else:
            yield begun, pending
            pending = ""
    if pending:
        yield begun, pending


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_replacement, text)


def _replacement(match: re.Match[str]) -> str:
    if match["code"]:
        return chr(int(match["code"], 16))
    letter = match["letter"] or ""
    if letter == "u":
        raise PropertiesError(r"\u is not followed by four hexadecimal digits")
    return _LETTERS.get(letter, letter)
