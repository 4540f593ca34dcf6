"""SQL on Spark: queries that run for ever, and questions that are large or never end."""
