"""The types of columns, as ksqlDB and Spark spell them."""

import re
from difflib import get_close_matches
from typing import Final

from moldau.pipelines.sql.language.cursor import Cursor
from moldau.pipelines.sql.language.lexing import Shape
from moldau.pipelines.sql.language.refusals import TYPES_NESTED_MAX

DECIMAL_DIGITS_MAX: Final = 38
PLAIN: Final = {
    "STRING": "string", "VARCHAR": "string", "BOOLEAN": "boolean",
    "TINYINT": "tinyint", "BYTE": "tinyint", "SMALLINT": "smallint", "SHORT": "smallint",
    "INT": "int", "INTEGER": "int", "BIGINT": "bigint", "LONG": "bigint",
    "FLOAT": "float", "REAL": "float", "DOUBLE": "double",
    "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz",
    "BINARY": "binary", "BYTES": "binary",
}  # fmt: skip
_DECIMAL: Final = ("DECIMAL", "NUMERIC", "DEC")
_KNOWN: Final = (*PLAIN, *_DECIMAL, "ARRAY", "MAP", "STRUCT")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def take_type(cursor: Cursor, nested: int = 0) -> str:
    """Take a type; it is returned as Spark's DDL writes it."""
    token = cursor.next
    word = token.word if token is not None else ""
    if token is None or word not in _KNOWN:
        near = get_close_matches(word, _KNOWN, 1)
        cursor.fail("a column type", known=near)
    if nested > TYPES_NESTED_MAX:
        raise cursor.error(f"types are nested more than {TYPES_NESTED_MAX} deep", token)
    cursor.advance()
    if word in PLAIN:
        return PLAIN[word]
    if word in _DECIMAL:
        return _decimal(cursor)
    cursor.expect("<")
    if word == "ARRAY":
        inner = take_type(cursor, nested + 1)
    elif word == "MAP":
        key = take_type(cursor, nested + 1)
        cursor.expect(",")
        inner = f"{key}, {take_type(cursor, nested + 1)}"
    else:
        inner = _fields(cursor, nested)
    cursor.expect(">")
    return f"{word.lower()}<{inner}>"


def _fields(cursor: Cursor, nested: int) -> str:
    fields = []
    while True:
        name = cursor.name("the name of a field")
        cursor.take(":")
        fields.append(f"{quote(name)}: {take_type(cursor, nested + 1)}")
        if not cursor.take(","):
            return ", ".join(fields)


def _decimal(cursor: Cursor) -> str:
    if not cursor.take("("):
        return "decimal(10,0)"
    token = cursor.next
    precision = cursor.count("how many digits")
    if token is not None and precision > DECIMAL_DIGITS_MAX:
        raise cursor.error(f"a decimal has at most {DECIMAL_DIGITS_MAX} digits", token)
    scale = 0
    if cursor.take(","):
        token = cursor.next
        if token is None or token.shape is not Shape.NUMBER or not token.text.isdecimal():
            cursor.fail("how many digits are behind the point")
        scale = int(cursor.advance().text[:9])
        if scale > precision:
            raise cursor.error(f"of {precision} digits, {scale} cannot be behind the point", token)
    cursor.expect(")")
    return f"decimal({precision},{scale})"


def quote(name: str) -> str:
    """Return a name as Spark reads it: in backquotes, if it needs them."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
