"""Assignments of partitions to members, decided by the coordinator."""
