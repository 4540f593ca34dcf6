"""Values as they are written in SQL, as JSON has them, checked against a column's type."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias, TypeVar

from sqlglot import exp

SqlType: TypeAlias = exp.DType
Json: TypeAlias = object
Moment = TypeVar("Moment")

_INTEGER_BITS: Final[Mapping[SqlType, int]] = {
    SqlType.TINYINT: 8,
    SqlType.SMALLINT: 16,
    SqlType.INT: 32,
    SqlType.BIGINT: 64,
}


class ValueMismatchError(ValueError):
    """A value is not of the type that is wanted."""


def json_value(expression: exp.Expr, kind: exp.DataType) -> Json:
    """Return a literal of a type as JSON's value: Decimals for numbers with a point.

    `ValueMismatchError` says what is wrong with it.
    """
    match expression:
        case exp.Null():
            return None
        case exp.Cast():  # TIMESTAMP '...', 5L: what it is cast to is checked by the column's type
            return json_value(expression.this, kind)
        case exp.Paren():
            return json_value(expression.this, kind)
        case _:
            read = _READERS.get(kind.this)
            if read is None:
                raise ValueMismatchError(f"INSERT ... VALUES cannot write {_name(kind)}")
            return read(expression, kind)


def _integer(expression: exp.Expr, kind: exp.DataType) -> int:
    number = _number(expression)
    bits = _INTEGER_BITS[kind.this]
    if number is None or number != number.to_integral_value():
        raise _mismatch(expression, kind)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueMismatchError(f"{number} does not fit {_name(kind)}")
    return int(number)


def _float(expression: exp.Expr, kind: exp.DataType) -> float:
    number = _number(expression)
    if number is None:
        raise _mismatch(expression, kind)
    if math.isinf(value := float(number)):
        raise ValueMismatchError(f"{number} does not fit {_name(kind)}")
    return value


def _decimal(expression: exp.Expr, kind: exp.DataType) -> Decimal:
    number = _number(expression)
    if number is None:
        raise _mismatch(expression, kind)
    precision, scale = (int(each.this.this) for each in kind.expressions)
    rounded = round(number, scale)
    if rounded != number or abs(rounded) >= 10 ** (precision - scale):
        raise ValueMismatchError(f"{number} does not fit {_name(kind)}")
    return rounded


def _number(expression: exp.Expr) -> Decimal | None:
    match expression:
        case exp.Neg():
            inner = _number(expression.this)
            return None if inner is None else -inner
        case exp.Cast() | exp.Paren():
            return _number(expression.this)
        case exp.Literal(is_string=False):
            try:
                return Decimal(expression.name)
            except InvalidOperation:
                return None
        case _:
            return None


def _text(expression: exp.Expr, kind: exp.DataType) -> str:
    if not (isinstance(expression, exp.Literal) and expression.is_string):
        raise _mismatch(expression, kind)
    return expression.name


def _boolean(expression: exp.Expr, kind: exp.DataType) -> bool:
    if not isinstance(expression, exp.Boolean):
        raise _mismatch(expression, kind)
    return bool(expression.this)


def _timestamp(expression: exp.Expr, kind: exp.DataType) -> str:
    moment = _moment(expression, kind, datetime.fromisoformat)
    # Without a zone it is UTC: the server's own zone is nobody's business.
    zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return f"{zoned.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _local_timestamp(expression: exp.Expr, kind: exp.DataType) -> str:
    moment = _moment(expression, kind, datetime.fromisoformat)
    if moment.tzinfo is not None:
        raise ValueMismatchError(f"'{expression.name}' has a zone, and {_name(kind)} has none")
    return moment.isoformat(timespec="microseconds")


def _date(expression: exp.Expr, kind: exp.DataType) -> str:
    return _moment(expression, kind, date.fromisoformat).isoformat()


def _moment(expression: exp.Expr, kind: exp.DataType, read: Callable[[str], Moment]) -> Moment:
    text = _text(expression, kind)
    try:
        return read(text.strip())
    except ValueError:
        raise ValueMismatchError(f"'{text}' is no {_name(kind)}") from None


def _binary(expression: exp.Expr, kind: exp.DataType) -> bytes:
    if isinstance(expression, exp.HexString):
        return bytes.fromhex(expression.name)
    return _text(expression, kind).encode()


def _array(expression: exp.Expr, kind: exp.DataType) -> list[Json]:
    if not isinstance(expression, exp.Array):
        raise _mismatch(expression, kind)
    return [json_value(each, kind.expressions[0]) for each in expression.expressions]


def _map(expression: exp.Expr, kind: exp.DataType) -> dict[str, Json]:
    if not isinstance(expression, exp.VarMap | exp.Map):
        raise _mismatch(expression, kind)
    key_kind, value_kind = kind.expressions
    keys, values = expression.args["keys"].expressions, expression.args["values"].expressions
    return {
        str(json_value(key, key_kind)): json_value(value, value_kind)
        for key, value in zip(keys, values, strict=True)
    }


def _struct(expression: exp.Expr, kind: exp.DataType) -> dict[str, Json]:
    if not isinstance(expression, exp.Struct):
        raise _mismatch(expression, kind)
    kinds = {each.name: each.kind for each in kind.expressions}
    found: dict[str, Json] = dict.fromkeys(kinds)
    for each in expression.expressions:
        name = each.this.name if isinstance(each, exp.PropertyEQ) else ""
        if name not in kinds:
            raise ValueMismatchError(
                f"{name or each.sql('spark')} is no field of {_name(kind)}: use named_struct"
            )
        found[name] = json_value(each.expression, kinds[name])
    return found


_READERS: Final[Mapping[SqlType, Callable[[exp.Expr, exp.DataType], Json]]] = {
    **dict.fromkeys(_INTEGER_BITS, _integer),
    SqlType.FLOAT: _float,
    SqlType.DOUBLE: _float,
    SqlType.DECIMAL: _decimal,
    SqlType.TEXT: _text,
    SqlType.BOOLEAN: _boolean,
    SqlType.TIMESTAMPTZ: _timestamp,
    SqlType.TIMESTAMPNTZ: _local_timestamp,
    SqlType.DATE: _date,
    SqlType.BINARY: _binary,
    SqlType.ARRAY: _array,
    SqlType.MAP: _map,
    SqlType.STRUCT: _struct,
}


def _mismatch(expression: exp.Expr, kind: exp.DataType) -> ValueMismatchError:
    return ValueMismatchError(f"{expression.sql('spark')} is no {_name(kind)}")


def _name(kind: exp.DataType) -> str:
    return kind.sql("spark").lower()


def dump_json(value: Json) -> str:
    """Return JSON's text, with decimals as they are and bytes in base 64, as Spark writes them."""
    match value:
        case dict():
            inner = (f"{dump_json(str(key))}:{dump_json(each)}" for key, each in value.items())
            return f"{{{','.join(inner)}}}"
        case list():
            return f"[{','.join(map(dump_json, value))}]"
        case Decimal():
            return format(value, "f")
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case _:
            return json.dumps(value, ensure_ascii=False)
