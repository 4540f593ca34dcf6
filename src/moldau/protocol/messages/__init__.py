"""Requests and responses: one file per API, and the headers."""
