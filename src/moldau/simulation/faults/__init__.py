"""Faults of a world: what they are, when they happen, and scripts of them that replay."""
