"""A relation in a question: which of its columns are asked for, and how it is read."""

from dataclasses import dataclass, field
from typing import Final

from moldau.pipelines.sql.language.queries import AsOf
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import FromSource, NamedColumn, column
from moldau.pipelines.sql.local.types import (
    BIGINT,
    HEADERS,
    INT,
    STRING,
    TIMESTAMP,
    SparkType,
    parse_type,
    quoted,
)
from moldau.pipelines.sql.relations import Relation, RelationKind, guessed

METADATA: Final = {
    "_topic": STRING, "_partition": INT, "_offset": BIGINT, "_timestamp": TIMESTAMP,
    "_headers": HEADERS,
}  # fmt: skip
"""The columns of the record itself, which `*` does not have."""
PLAIN_FORMATS: Final = ("raw", "string", "int", "long", "float", "double")
KEY_FORMATS: Final = {
    "string": "string", "int": "int", "bigint": "long", "float": "float", "double": "double",
    "binary": "raw",
}  # fmt: skip
"""The formats of keys of one column: those of Java's serializers."""
VALUE_TYPES: Final = {name: SparkType(its_type) for its_type, name in KEY_FORMATS.items()}


@dataclass(slots=True)
class WantedRelation:
    """A relation as it is to be loaded."""

    relation: Relation
    as_of: AsOf | None
    table: str
    """Its name in DuckDB."""
    is_guessed: bool = False
    """Whether nobody has declared it."""
    used: set[str] = field(default_factory=set)
    """The columns that the question asks for."""

    @property
    def guess(self) -> str:
        """What is to be known of its columns if one is wrong; nothing if it was declared."""
        return guessed(self.relation.topic) if self.is_guessed else ""

    @property
    def keys(self) -> list[tuple[str, SparkType]]:
        """The key's columns."""
        return [(each.name, parse_type(each.type)) for each in self.relation.keys]

    @property
    def values(self) -> list[tuple[str, SparkType]]:
        """The value's columns."""
        return [(each.name, parse_type(each.type)) for each in self.relation.values]

    @property
    def is_table(self) -> bool:
        """Whether only the latest record of a key counts."""
        return self.relation.kind is RelationKind.TABLE

    @property
    def key_format(self) -> str:
        """How keys are decoded."""
        keys = self.keys
        return KEY_FORMATS.get(str(keys[0][1]), "json") if len(keys) == 1 else "json"

    def check(self) -> None:
        """Leave to Spark what is in a format that is not read here."""
        relation = self.relation
        if relation.format not in ("json", *PLAIN_FORMATS):
            raise GoesToSpark(f"{relation.name} is in format {relation.format}")
        if relation.format in PLAIN_FORMATS:
            types = [its_type for _, its_type in self.values]
            if types != [VALUE_TYPES[relation.format]]:
                raise GoesToSpark(
                    f"{relation.name} in format {relation.format} has one column of "
                    f"{VALUE_TYPES[relation.format]}"
                )

    def source(self, alias: str) -> FromSource:
        """Return the relation as it is seen in a FROM, by an alias."""
        self.check()
        known = dict((*self.keys, *self.values))
        columns = [
            NamedColumn(each.name, column(alias, each.name, known[each.name]))
            for each in self.relation.columns
        ]
        taken = {each.name.lower() for each in columns}
        hidden = [
            NamedColumn(name, column(alias, name, its_type))
            for name, its_type in METADATA.items()
            # A topic that has come from this one may have such a column of its own.
            if name not in taken
        ]
        return FromSource(alias, columns, hidden, quoted(self.table), self.used.add)
