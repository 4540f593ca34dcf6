"""Compaction: the newest record of every key stays, in pure steps over closed segments."""
