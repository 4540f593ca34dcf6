"""Faces of Kafka's command line tools: what people copy from tutorials works as written."""
