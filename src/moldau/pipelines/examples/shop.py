"""A shop: orders with who made them, what each user spends in a minute, what is looked at.

`moldau demo` feeds and runs it; with a broker of your own: moldau pipeline run shop.py
shop.sql beside it is a shop on the same topics, for `moldau sql`.
"""

from moldau.pipelines import App
from moldau.pipelines import functions as F  # noqa: N812 - as everybody calls them

app = App("shop", bootstrap="localhost:9092")
orders = app.stream(
    "orders",
    schema="id string, user string, amount double, at timestamp",
    event_time="at",
    watermark="10 seconds",
)
users = app.table("users", key="user string", schema="name string, city string")

app.to(app.join(orders, users, on="user", how="left"), "orders-enriched", key="id")

totals = orders.groupBy("user", F.window("at", "1 minute")).agg(F.sum("amount").alias("total"))
app.to(totals, "minute-totals", key=["user", "window"], emit="final")

clicks = app.stream(
    "clicks",
    schema="user string, page string, at timestamp",
    event_time="at",
    watermark="10 seconds",
)
views = clicks.groupBy("page", F.window("at", "1 minute")).agg(F.count("*").alias("views"))
app.to(views, "views", key=["page", "window"], emit="final")

if __name__ == "__main__":
    app.run()
