"""A text as tokens and statements, before anybody asks what they mean."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from moldau.pipelines.sql.language.errors import SqlError, error_at

NESTING_MAX: Final = 32
"""Of brackets: parsers are recursive, and Python's stack has an end."""

# Strings and quoted names end with themselves, or not at all: then the last group is missing.
# Possessive, so that a megabyte without an end is read once and not again and again.
_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s++ | --[^\n]*+ )
  | (?P<comment> /\* )
  | (?P<string> [rR]'[^']*+(?P<raw1>')? | [rR]"[^"]*+(?P<raw2>")?
      | '(?:[^'\\]++|\\.|'')*+(?P<end1>')? | "(?:[^"\\]++|\\.|"")*+(?P<end2>")? )
  | (?P<quoted> `(?:[^`]++|``)*+(?P<end3>`)? )
  | (?P<number> [0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?\w*+ )
  | (?P<word> \w++ )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")
_ENDS: Final = ("raw1", "raw2", "end1", "end2", "end3")
_FORBIDDEN: Final = re.compile(r"[\0\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)|(['\"])\2", re.S)
_ESCAPED: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_OPENING: Final = frozenset(_CLOSING.values())


class Shape(Enum):
    """What a token looks like."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    MARK = "mark"


_SHAPES: Final = {each.value: each for each in Shape}


class Token(NamedTuple):
    """A word, a quoted name, a string, a number or one character of anything else."""

    shape: Shape
    text: str
    """As it is written."""
    start: int
    end: int
    depth: int
    """How many brackets are open around it; a bracket is as deep as what is around the pair."""

    @property
    def word(self) -> str:
        """In capitals, if it may be a keyword; else nothing."""
        return self.text.upper() if self.shape is Shape.WORD else ""

    @property
    def value(self) -> str:
        """Without quotes and escapes."""
        if self.shape is Shape.QUOTED:
            return self.text[1:-1].replace("``", "`")
        if self.shape is not Shape.STRING:
            return self.text
        if self.text[0] in "rR":
            return self.text[2:-1]
        return _ESCAPE.sub(_unescape, self.text[1:-1])


class UnfinishedError(SqlError):
    """A string, a name or a comment without an end."""


def split(text: str) -> list[list[Token]]:
    """Return the tokens of each statement; comments are in none, nor are the semicolons."""
    statements: list[list[Token]] = [[]]
    opened: list[Token] = []
    for shape, written, start, end in _scan(text):
        if written == ";":
            if opened:
                raise _not_closed(text, opened[-1])
            statements.append([])
            continue
        depth = len(opened)
        if written in _CLOSING:
            if not opened or opened[-1].text != _CLOSING[written]:
                raise error_at(text, start, end, f"{written!r} closes nothing that is open")
            opened.pop()
            depth -= 1
        token = Token(shape, written, start, end, depth)
        if written in _OPENING:
            opened.append(token)
            if len(opened) > NESTING_MAX:
                message = f"brackets are nested more than {NESTING_MAX} deep"
                raise error_at(text, start, end, message)
        statements[-1].append(token)
    if opened:
        raise _not_closed(text, opened[-1])
    return [tokens for tokens in statements if tokens]


def is_complete(text: str) -> bool:
    """Return whether a shell has read enough: the text ends with a `;` that ends a statement.

    What is wrong however it goes on is complete too: it is time for the error.
    """
    last = ""
    try:
        for _, written, _, _ in _scan(text):
            last = written
    except UnfinishedError:
        return False
    except SqlError:
        return True
    return last == ";"


def _scan(text: str) -> Iterator[tuple[Shape, str, int, int]]:
    """Yield what each token looks like, how it is written, and where it begins and ends."""
    if found := _FORBIDDEN.search(text):
        code = ord(found.group())
        raise error_at(text, found.start(), found.end(), f"the character U+{code:04X} is no text")
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None, "every character is something"
        shape = str(match.lastgroup)
        if shape == "comment":
            position = _comment_end(text, position)
            continue
        if shape in ("string", "quoted") and not any(match.group(end) for end in _ENDS):
            what = "name" if shape == "quoted" else "string"
            raise _unfinished(text, position, what)
        if shape != "space":
            yield _SHAPES[shape], match.group(), position, match.end()
        position = match.end()


def _comment_end(text: str, start: int) -> int:
    # As in Spark, comments are nested.
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unfinished(text, start, "comment")


def _unfinished(text: str, start: int, what: str) -> UnfinishedError:
    error = error_at(text, start, start + 1, f"this {what} has no end")
    return UnfinishedError(str(error), error.line, error.column)


def _not_closed(text: str, bracket: Token) -> SqlError:
    return error_at(text, bracket.start, bracket.end, f"{bracket.text!r} is not closed")


def _unescape(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if escaped is None:
        return str(match.group(2))
    if len(escaped) == 1:
        return _ESCAPED.get(escaped, escaped)
    code = int(escaped[1:], 16) if escaped[0] in "uU" else int(escaped, 8)
    return chr(code) if code <= 0x10FFFF else escaped
