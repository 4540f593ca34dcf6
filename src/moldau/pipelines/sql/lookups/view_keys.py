"""A table's key, as somebody types it."""

import json

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.relations import Relation


def key_of(relation: Relation, text: str) -> object:
    """Return the key that a text means: a text or a number, or a JSON object of several columns."""
    # A window is not asked for by its value, but by a range.
    columns = [each for each in relation.keys if each.name != "window"]
    if not columns:
        raise PipelineError(f"{relation.name} has no key")
    if len(columns) == 1 and columns[0].type == "string":
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if len(columns) == 1 and isinstance(found, int) and not isinstance(found, bool):
        return found
    names = {each.name for each in columns}
    if isinstance(found, dict) and found.keys() == names:
        return next(iter(found.values())) if len(columns) == 1 else found
    wanted = ", ".join(f'"{each.name}": {each.type}' for each in columns)
    raise PipelineError(f"key {text}: {{{wanted}}} is wanted, as JSON")
