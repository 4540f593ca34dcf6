"""Views as HTTP has them: which there are, and what one has of a key."""

import base64
from collections.abc import Iterable

from moldau.pipelines.sql.plain_values import plain
from moldau.pipelines.sql.ports import ViewRows
from moldau.pipelines.sql.relations import Relation


def list_views(tables: Iterable[Relation]) -> dict[str, object]:
    """Return which tables can be asked, and what of."""
    return {
        "views": [
            {
                "name": table.name,
                "topic": table.topic,
                "key": {each.name: each.type for each in table.keys},
            }
            for table in tables
        ]
    }


def answer(found: ViewRows, *, has_values: bool) -> dict[str, object]:
    """Return a key's rows; `has_values` for who decodes the records' values without us."""
    said: dict[str, object] = {
        "columns": [{"name": each.name, "type": each.type} for each in found.columns],
        "rows": plain(list(found.rows)),
        "offsets": {str(partition): each for partition, each in found.offsets.items()},
        "caught_up": found.is_caught_up,
    }
    if has_values:
        said["values"] = [base64.b64encode(each).decode() for each in found.values]
    return said
