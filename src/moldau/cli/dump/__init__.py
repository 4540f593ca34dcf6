"""The files of a data directory, read for people to look at: nothing is locked, nothing changed."""
