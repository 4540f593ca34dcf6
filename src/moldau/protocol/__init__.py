"""Kafka's wire and storage messages: declarations, codec, headers, error codes."""
