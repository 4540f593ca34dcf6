"""A question without an end that looks at each record alone: answered poll by poll."""

from collections.abc import Generator, Mapping
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from moldau.client.sync_consumer import Consumer
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import CatalogSnapshot
from moldau.pipelines.sql.language.queries import EmitWhen
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.local.aggregates import AGGREGATES, WINDOW_FUNCTIONS
from moldau.pipelines.sql.local.answering import READ, Question, as_spark
from moldau.pipelines.sql.local.database import open_database
from moldau.pipelines.sql.local.loading import Loader
from moldau.pipelines.sql.local.records import QuestionLimits
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.relations import Relation, RelationKind
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET, Session
from moldau.pipelines.sql.topic_spans import assign_topic

POLL_MS: Final = 250
"""How soon it is noticed that nobody reads any more."""
_SELECT: Final = {"expressions", "from", "from_", "where", "kind"}
"""The clauses that look at one row."""


def check_stateless(select: Select, snapshot: CatalogSnapshot) -> None:
    """Leave to Spark what needs more than one record, or more than the record."""
    query = select.query.expression
    if select.emit is not EmitWhen.CHANGES:
        raise GoesToSpark("EMIT FINAL waits for windows to close")
    tables = select.query.tables
    relation = snapshot.find(tables[0].name) if tables else None
    if relation is not None and relation.kind is RelationKind.TABLE:
        raise GoesToSpark(f"{relation.name} is a table, and its changes are")
    is_plain = isinstance(query, exp.Select) and len(tables) == 1
    clauses = {name for name, each in query.args.items() if each} - _SELECT
    if not is_plain or clauses or query.find(exp.Subquery) is not None:
        raise GoesToSpark("EMIT CHANGES of more than one stream's rows, one by one")
    for node in query.walk():
        name = node.name if isinstance(node, exp.Anonymous) else node.key
        is_stateful = name.lower() in AGGREGATES or name.lower() in WINDOW_FUNCTIONS
        if is_stateful or isinstance(node, exp.AggFunc | exp.Window):
            raise GoesToSpark(f"{name.lower()} without an end has a state")


def push(
    config: Mapping[str, object],
    text: str,
    catalog: Mapping[str, Relation],
    session: Session,
    asker: Asker,
) -> tuple[pa.Schema, Generator[pa.Table]]:
    """Return the columns of a question, and its rows for as long as the asker is there."""
    starting = session.get(AUTO_OFFSET_RESET)
    consumer = Consumer(config={**config, **READ, "auto.offset.reset": starting})
    try:
        question = Question(config, consumer, catalog, {}, session)
        query = question.translate(text)
        (wanted,) = question.wanted
        is_guessed = wanted.is_guessed
        known = {**catalog, wanted.relation.name: wanted.relation}
        assign_topic(consumer, wanted.relation.topic)
        # Where `latest` is must not depend on when somebody takes the first rows.
        for place in consumer.assignment:
            if starting == "latest":
                consumer.seek_to_end(place)
            else:
                consumer.seek_to_beginning(place)
            consumer.position(place)
        with open_database(QuestionLimits().memory_bytes_max) as database:
            Loader(wanted).load(database, [])
            schema = as_spark(database.sql(query.text).to_arrow_table(), query).schema
    except BaseException:
        consumer.close()
        raise

    def rows() -> Generator[pa.Table]:
        with consumer, open_database(QuestionLimits().memory_bytes_max, asker) as database:
            while not asker.is_cancelled:
                found = consumer.poll_arrow(timeout_ms=POLL_MS)
                if not len(found):
                    continue
                # Anew each time: `current_timestamp()` is that of a batch, as Spark has it.
                question = Question(config, consumer, known, {})
                query = question.translate(text)
                (wanted,) = question.wanted
                wanted.is_guessed = is_guessed
                loader = Loader(wanted)
                batches: list[Any] = [
                    each.select(loader.columns) for each in pa.RecordBatchReader.from_stream(found)
                ]
                loader.load(database, batches)
                table = as_spark(database.sql(query.text).to_arrow_table(), query)
                database.execute(f'DROP TABLE "{wanted.table}"')
                if table.num_rows:
                    yield table

    return schema, rows()
