"""Coordinators of groups, transactions and shares over the partitions of their topics."""
