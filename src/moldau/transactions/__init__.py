"""Transactions: who may write in one, which partitions it wrote to, and how it ended."""
