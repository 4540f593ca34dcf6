"""Data pipelines on Spark: the connector, and streams from topic to topic."""
