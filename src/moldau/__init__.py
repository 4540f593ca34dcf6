"""Moldau: Kafka's whole platform as one Python package."""

__version__ = "0.1.0.dev0"
