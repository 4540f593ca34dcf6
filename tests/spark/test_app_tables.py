"""Tables in apps: joined, written to a topic with their tombstones, and looked up there."""

import json

from moldau import Producer
from moldau.pipelines import App
from moldau.testing.broker import Broker
from tests.spark.apps import Apps
from tests.spark.reading import read


def put(broker: Broker, topic: str, key: str, value: dict[str, object] | None) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        data = None if value is None else json.dumps(value).encode()
        producer.send(topic, data, key=key.encode())


def joining(apps: Apps, topic: str) -> App:
    app = apps.make()
    names = app.table(f"{topic}-names", "user string", "name string")
    cities = app.table(f"{topic}-cities", "user string", "city string")
    query = app.to(app.join(names, cities), f"{topic}-both")
    assert (query.emit, query.mode) == ("changes", "append")
    assert [source.topic for source in query.sources] == [f"{topic}-names", f"{topic}-cities"]
    return app


def test_a_join_of_tables_is_a_topic_with_tombstones(
    apps: Apps, broker: Broker, topic: str
) -> None:
    for name in ("names", "cities"):
        broker.create_topic(f"{topic}-{name}", partitions=2)
    put(broker, f"{topic}-names", "ann", {"name": "Ann"})
    put(broker, f"{topic}-names", "bob", {"name": "Bob"})
    put(broker, f"{topic}-cities", "ann", {"city": "Brno"})
    joining(apps, topic).run(once=True)
    both = apps.make().table(f"{topic}-both", "user string", "name string, city string")
    assert both.get("ann") == {"name": "Ann", "city": "Brno"}
    assert both.get("bob") is None
    put(broker, f"{topic}-cities", "ann", None)
    joining(apps, topic).run(once=True)
    assert both.get("ann") is None
    written = [
        (record.key, record.value) for record in read(broker.bootstrap_servers, f"{topic}-both")
    ]
    assert written == [(b"ann", b'{"name":"Ann","city":"Brno"}'), (b"ann", None)]
