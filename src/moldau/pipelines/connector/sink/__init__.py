"""The sink: rows to topics, each batch of a query exactly once."""
