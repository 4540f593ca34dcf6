"""Rows by key, from views of tables."""
