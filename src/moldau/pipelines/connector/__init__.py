"""Spark's source and sink for topics, format `moldau`."""
