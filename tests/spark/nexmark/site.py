"""Nexmark's queries in PySpark over format `moldau`, q0 to q8, from topics to topics.

docs/nexmark.md says what is otherwise than in the public benchmark.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming import DataStreamWriter

from moldau.pipelines import writer

SCHEMAS = {
    "persons": "id long, name string, city string, state string, at long",
    "auctions": "id long, seller long, category long, at long, expires long",
    "bids": "auction long, bidder long, price long, at long",
    "bids-in-time": "auction long, seller long, category long, expires long, price long",
}
WATERMARK = "5 seconds"
TUMBLING = "10 seconds"
SLIDE = "2 seconds"
BATCH_RECORDS = 8_000


class Site:
    """Where the topics are, and where queries keep what they know."""

    def __init__(self, spark: SparkSession, servers: str, directory: Path) -> None:
        self._spark = spark
        self._servers = servers
        self._directory = directory

    def stream(self, topic: str) -> DataFrame:
        """Return a topic's events as they come, with `time` to go by where they have one."""
        rows = (
            self._spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH_RECORDS)
            .option("columns", "value")
            .load()
            .select(F.from_json(F.col("value").cast("string"), SCHEMAS[topic]).alias("event"))
            .select("event.*")
        )
        if "at" not in rows.columns:
            return rows
        return rows.withColumn("time", F.timestamp_millis("at")).withWatermark("time", WATERMARK)

    def append(self, rows: DataFrame, topic: str) -> None:
        """Write rows that never change, until all that there is has been read."""
        values = rows.select(F.to_json(F.struct("*")).alias("value"))
        out = values.writeStream.format("moldau").option("topic", topic)
        self._run(out.option("kafka.bootstrap.servers", self._servers), topic)

    def upsert(
        self, rows: DataFrame, topic: str, key: str, finish: Callable[[DataFrame], DataFrame]
    ) -> None:
        """Write what a batch makes of an aggregation's whole result, by key."""
        write = writer(topic, bootstrap=self._servers)

        def write_batch(whole: DataFrame, batch: int) -> None:
            values = F.to_json(F.struct("*")).alias("value")
            write(finish(whole).select(F.col(key).cast("string").alias("key"), values), batch)

        self._run(rows.writeStream.outputMode("complete").foreachBatch(write_batch), topic)

    def _run(self, out: DataStreamWriter, name: str) -> None:
        checkpoint = str(self._directory / name)
        query = out.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()


def q0(site: Site) -> None:
    """Pass-through."""
    site.append(site.stream("bids").drop("time"), "q0")


def q1(site: Site) -> None:
    """Currency conversion."""
    euros = F.expr("CAST(price * 0.908 AS DECIMAL(23, 3))")
    site.append(site.stream("bids").withColumn("price", euros).drop("time"), "q1")


def q2(site: Site) -> None:
    """Selection."""
    site.append(site.stream("bids").where("auction % 123 = 0").select("auction", "price"), "q2")


def q3(site: Site) -> None:
    """Local item suggestion: what is sold by whom in three states, whoever came first."""
    persons = site.stream("persons").where("state IN ('OR', 'ID', 'CA')")
    auctions = site.stream("auctions").where("category = 10").select("id", "seller")
    local = persons.withColumnRenamed("id", "person").join(auctions, F.expr("seller = person"))
    site.append(local.select("name", "city", "state", "id"), "q3")


def bids_in_time(site: Site) -> None:
    """Join bids with their auctions, while these last: for q4 and q6."""
    bids = site.stream("bids").withColumnRenamed("time", "bid_time").drop("at")
    auctions = site.stream("auctions").withColumn("end", F.timestamp_millis("expires"))
    # No auction lasts longer, so that Spark may forget the old.
    lasting = "bid_time BETWEEN time AND end AND bid_time <= time + INTERVAL 20 SECONDS"
    joined = auctions.join(bids, F.expr(f"auction = id AND {lasting}"))
    site.append(joined.select("auction", "seller", "category", "expires", "price"), "bids-in-time")


def _final_prices(site: Site) -> DataFrame:
    keys = ("auction", "seller", "category", "expires")
    return site.stream("bids-in-time").groupBy(*keys).agg(F.max("price").alias("price"))


def q4(site: Site) -> None:
    """Average price for a category: of the highest bids on its auctions."""
    average = F.avg("price").alias("average")
    site.upsert(
        _final_prices(site), "q4", "category", lambda rows: rows.groupBy("category").agg(average)
    )


def q5(site: Site) -> None:
    """Hot items: the auctions with the most bids in each of the overlapping windows."""
    counts = (
        site.stream("bids").groupBy(F.window("time", TUMBLING, SLIDE), "auction").count()
    ).withColumnRenamed("count", "bids")
    rivals = counts.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("all")
    )
    hot = rivals.select(_start(), F.expr("inline(filter(all, each -> each.bids = most))"))
    site.append(hot, "q5")


def q6(site: Site) -> None:
    """Average selling price by seller: of the last ten auctions that have ended."""
    latest = Window.partitionBy("seller").orderBy(F.desc("expires"), F.desc("auction"))

    def finish(rows: DataFrame) -> DataFrame:
        last = rows.withColumn("place", F.row_number().over(latest)).where("place <= 10")
        return last.groupBy("seller").agg(F.avg("price").alias("average"))

    site.upsert(_final_prices(site), "q6", "seller", finish)


def q7(site: Site) -> None:
    """Highest bid: all that have the highest price of their window."""
    by_price = (
        site.stream("bids")
        .groupBy(F.window("time", TUMBLING), "price")
        .agg(F.collect_list(F.struct("auction", "bidder", "price")).alias("bids"))
    )
    highest = by_price.groupBy("window").agg(F.max_by("bids", "price").alias("bids"))
    site.append(highest.select(_start(), F.expr("inline(bids)")), "q7")


def q8(site: Site) -> None:
    """Monitor new users: who has opened an auction in the window of their registration."""
    persons = site.stream("persons").select("id", "name", F.window("time", TUMBLING))
    sellers = site.stream("auctions").select(
        "seller", F.window("time", TUMBLING).alias("auction_window")
    )
    opened = persons.join(sellers, F.expr("seller = id AND auction_window = window"))
    once = opened.dropDuplicates(["id", "window"])
    site.append(once.select("id", "name", _start()), "q8")


def _start() -> "F.Column":
    return F.unix_millis("window.start").alias("start")


QUERIES: Mapping[str, Callable[[Site], None]] = {
    query.__name__: query for query in (q0, q1, q2, q3, q4, q5, q6, q7, q8)
}
