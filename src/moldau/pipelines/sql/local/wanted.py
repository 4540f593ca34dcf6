"""A relation in a question: which of its columns are asked for, and how it is read."""

from dataclasses import dataclass, field
from typing import Final

from moldau.pipelines.sql.language.queries import AsOf, Pseudo
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import FromSource, NamedColumn, column
from moldau.pipelines.sql.local.types import (
    BIGINT,
    EPOCHS,
    HEADERS,
    INT,
    STRING,
    TIMESTAMP,
    SparkType,
    parse_type,
    quoted,
)
from moldau.pipelines.sql.relations import FAIL, Relation, RelationKind, guessed

METADATA: Final = {
    "_topic": STRING, "_partition": INT, "_offset": BIGINT, "_timestamp": TIMESTAMP,
    "_headers": HEADERS,
}  # fmt: skip
"""The columns of the record itself, which `*` does not have."""
ROWTIME: Final = Pseudo.ROWTIME.value
"""The time of a row: that of the event, or the record's."""
TIMESTAMP_COLUMN: Final = "_timestamp"
PLAIN_FORMATS: Final = ("raw", "string", "int", "long", "float", "double")
KEY_FORMATS: Final = {
    "string": "string", "int": "int", "bigint": "long", "float": "float", "double": "double",
    "binary": "raw",
}  # fmt: skip
"""The formats of keys of one column: those of Java's serializers."""
VALUE_TYPES: Final = {name: SparkType(its_type) for its_type, name in KEY_FORMATS.items()}


def stored_values(relation: Relation) -> list[tuple[str, SparkType]]:
    """Return the columns of a relation's values, as they are read from records."""
    epoch = relation.epoch
    return [
        (each.name, EPOCHS[epoch.unit])
        if epoch is not None and each.name == epoch.column
        else (each.name, parse_type(each.type))
        for each in relation.values
    ]


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
    def stored_values(self) -> list[tuple[str, SparkType]]:
        """The value's columns, as they are loaded: a time may be a number in the record."""
        return stored_values(self.relation)

    @property
    def loaded(self) -> set[str]:
        """The columns to decode: those that are asked for, or all.

        Where records may be left out, which these are must not depend on what is asked for.
        """
        if self.relation.on_error == FAIL:
            return self.used
        return self.used | {each.name for each in self.relation.columns}

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
            types = [parse_type(each.type) for each in relation.stored_values]
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
        time = self.relation.event_time
        if ROWTIME not in taken:
            rowtime = column(alias, TIMESTAMP_COLUMN if time is None else time, TIMESTAMP)
            hidden.append(NamedColumn(ROWTIME, rowtime))
        return FromSource(alias, columns, hidden, quoted(self.table), self._use)

    def _use(self, name: str) -> None:
        """Note that a column is asked for; the time of a row is another one's."""
        is_own = any(each.name == name for each in self.relation.columns)
        if name == ROWTIME and not is_own:
            name = self.relation.event_time or TIMESTAMP_COLUMN
        self.used.add(name)
