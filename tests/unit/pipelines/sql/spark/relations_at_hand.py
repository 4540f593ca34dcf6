"""The relations that these tests read."""

from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateSource, Select, relation_of
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.spark.sides import Side, find_sides

DECLARED = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='10 seconds');
CREATE STREAM clicks (url STRING) WITH (topic='clicks');
CREATE TABLE users (user STRING PRIMARY KEY, name STRING, city STRING) WITH (topic='users');
CREATE TABLE cities (city STRING PRIMARY KEY, country STRING) WITH (topic='cities');
CREATE TABLE prices (shop STRING PRIMARY KEY, item STRING PRIMARY KEY, price DOUBLE)
  WITH (topic='prices');
"""
RELATIONS: dict[str, Relation] = {
    each.name: relation_of(each) for each in parse(DECLARED) if isinstance(each, CreateSource)
}


def select(text: str) -> tuple[Select, tuple[Side, ...]]:
    """Parse a SELECT, and find what it reads."""
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return statement, find_sides(statement.query, RELATIONS.get)
