"""How functions say what they take: a name in Spark, types, and a text in DuckDB."""

from collections.abc import Callable, Sequence

from moldau.pipelines.sql.local.casts import cast
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import Sql
from moldau.pipelines.sql.local.types import NULL, STRING, SparkType, common_type

Function = Callable[[Sequence[Sql]], Sql]


class Mismatch(Exception):  # noqa: N818
    """These arguments are none that the function has here."""


def fixed(template: str, result: SparkType, *takes: SparkType) -> Function:
    """Return a function of fixed types, with `{0}` for its first argument."""

    def make(args: Sequence[Sql]) -> Sql:
        if len(args) != len(takes):
            raise Mismatch
        texts = [fit(each, wanted).text for each, wanted in zip(args, takes, strict=True)]
        return Sql(template.format(*texts), result)

    return make


def fit(sql: Sql, wanted: SparkType) -> Sql:
    """Return an argument as a function takes it: widened, as Spark does by itself."""
    if sql.type in (wanted, NULL):
        return cast(sql, wanted)
    if sql.literal is not None and sql.type == STRING and wanted.name in ("date", "timestamp"):
        return cast(sql, wanted)
    if wanted == STRING and (sql.type.is_integral or sql.type.name in ("date", "timestamp")):
        return cast(sql, wanted)
    if {sql.type.name, wanted.name} == {"date", "timestamp"}:
        return cast(sql, wanted)
    if common_type(sql.type, wanted) == wanted:
        return cast(sql, wanted)
    raise Mismatch


def exact(sql: Sql, wanted: SparkType) -> Sql:
    """Return an argument that Spark does not cast by itself."""
    if sql.type not in (wanted, NULL):
        raise Mismatch
    return cast(sql, wanted)


def together(args: Sequence[Sql]) -> tuple[list[Sql], SparkType]:
    """Return arguments as values of one type, and that type."""
    result = args[0].type
    for each in args[1:]:
        met = _meeting(result, each, args)
        if met is None:
            raise GoesToSpark(f"{result} beside {each.type}: it is cast at run time")
        result = met
    return [cast(each, result) for each in args], result


def _meeting(one: SparkType, other: Sql, args: Sequence[Sql]) -> SparkType | None:
    if other.type == STRING and other.literal is not None and one.name in ("date", "timestamp"):
        # A text that is written where a time is wanted is one.
        return one
    if one == STRING and args[0].literal is not None and other.type.name in ("date", "timestamp"):
        return other.type
    return common_type(one, other.type)


def whole(sql: Sql) -> int:
    """Return an argument that must be a number written in the query."""
    if sql.literal is None or not sql.type.is_integral:
        raise Mismatch
    return int(sql.literal)


def word(sql: Sql) -> str:
    """Return an argument that must be a text written in the query."""
    if sql.literal is None or sql.type != STRING:
        raise Mismatch
    return sql.literal
