"""Transactions: the producer of each, the partitions that it wrote to, and how it ended."""
