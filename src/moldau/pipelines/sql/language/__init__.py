"""The language: ksqlDB's statements around Spark's SELECT."""
