"""Statements over HTTP."""
