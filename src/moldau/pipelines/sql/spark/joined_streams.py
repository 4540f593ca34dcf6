"""Streams that are joined with streams: how long rows wait for others, and how late they are."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import Metadata, SelectQuery, TableUse, WithinUse
from moldau.pipelines.sql.relations import TIME_TYPE
from moldau.pipelines.sql.spark.clauses import first_side, select_of
from moldau.pipelines.sql.spark.sides import ROWTIME, Side

GRACE_DEFAULT: Final = "24 hours"
"""As in ksqlDB: how late rows of a stream without a watermark may be. Of an inner join it is only
how long they are kept; that of an outer one would have rows without a counterpart wait for it."""
_COMPARISONS: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.Between)


def watermarks_of(query: SelectQuery, sides: Sequence[Side]) -> Mapping[TableUse, str]:
    """Return how late the rows of streams that are joined WITHIN a time may be."""
    by_use = {side.use: side for side in sides}
    found: dict[TableUse, str] = {}
    for within in query.within:
        for side in (by_use[within.left], by_use[within.right]):
            watermark = _watermark(within, side)
            if found.setdefault(side.use, watermark) != watermark:
                raise PipelineError(
                    f"{side.called} has GRACE PERIOD {found[side.use]} and {watermark} in one "
                    "query: say the same of both"
                )
    return found


def _watermark(within: WithinUse, side: Side) -> str:
    if side.is_table:
        raise PipelineError(
            f"WITHIN: {side.called} is a table, which a row is joined with as it is then; leave "
            "WITHIN out"
        )
    watermark = within.grace or side.relation.watermark
    if watermark is None and within.outer:
        raise PipelineError(
            f"{within.outer} JOIN ... WITHIN: a row without a counterpart is written when none can "
            f"come any more; say how late rows of {side.called} may be, as in WITHIN "
            f"{within.after.upper()} GRACE PERIOD 5 MINUTES, or WITH (watermark='5 minutes') where "
            "it is declared"
        )
    return watermark or GRACE_DEFAULT


def leading_side(query: SelectQuery, sides: Sequence[Side]) -> Side | None:
    """Return the side that a result's key and time are of: that of which every row is there.

    None where no side is, as in a FULL JOIN, and where no name stands behind FROM.
    """
    select = select_of(query)
    leading = first_side(query, sides)
    for join in [] if select is None else select.args.get("joins") or []:
        if join.side == "FULL":
            return None
        if join.side == "RIGHT":
            leading = _side_of(join.this, sides)
    return leading


def watermark_of(query: SelectQuery, leading: Side) -> str | None:
    """Return how late rows of a result are by the time of a side: they have waited for others."""
    for within in query.within:
        if leading.use in (within.left, within.right):
            watermark = within.grace or leading.relation.watermark
            waited = within.after if leading.use == within.left else within.before
            return None if watermark is None else f"{watermark} {waited}"
    return leading.relation.watermark


def refuse_unbounded(query: SelectQuery, sides: Sequence[Side]) -> None:
    """Refuse joins of two streams whose rows would wait for others for ever."""
    for select in query.expression.find_all(exp.Select):
        origin = select.args.get("from_") or select.args.get("from")
        joins: list[exp.Join] = select.args.get("joins") or []
        if origin is None:
            continue
        found = [_side_of(node, sides) for node in (origin.this, *(each.this for each in joins))]
        streams = [side for side in found if side is not None and not side.is_table]
        # What is in brackets may have any columns, and be bounded by them.
        if len(streams) < len(found):
            continue
        conditions = [select.args.get("where"), *(each.args.get("on") for each in joins)]
        bounds = [bound for each in conditions if each for bound in each.find_all(*_COMPARISONS)]
        for place, (join, side) in enumerate(zip(joins, streams[1:], strict=True), 1):
            before = streams[:place]
            is_bounded = any(_has_time(each, [side]) and _has_time(each, before) for each in bounds)
            if not is_bounded and not _is_by_time(join, side):
                raise PipelineError(
                    f"JOIN {side.called}: without a bound of time every row of two streams is kept "
                    f"for ever; say how far apart they may be, as in JOIN {side.called} WITHIN "
                    "1 HOUR ON ..."
                )
            if not join.args.get("using") and not any(isinstance(each, exp.EQ) for each in bounds):
                raise PipelineError(
                    f"JOIN {side.called}: two streams are joined by columns that are equal, as in "
                    "ON a.id = b.id; what else is to hold comes behind AND"
                )


def _side_of(node: exp.Expr, sides: Sequence[Side]) -> Side | None:
    if not isinstance(node, exp.Table):
        return None
    name = ".".join(part.name for part in node.parts)
    found = (each for each in sides if (each.use.name, each.use.alias or "") == (name, node.alias))
    return next(found, None)


def _has_time(bound: exp.Expr, sides: Sequence[Side]) -> bool:
    """Return whether a comparison has a time of one of these sides."""
    return any(
        column.table.lower() in ("", side.called.lower()) and column.name.lower() in _times(side)
        for column in bound.find_all(exp.Column)
        for side in sides
    )


def _is_by_time(join: exp.Join, side: Side) -> bool:
    """Return whether rows meet only at the same time."""
    return any(each.name.lower() in _times(side) for each in join.args.get("using") or ())


def _times(side: Side) -> set[str]:
    own = {each.name.lower() for each in side.relation.columns if each.type.startswith(TIME_TYPE)}
    return own | {ROWTIME, Metadata.TIMESTAMP.value}
