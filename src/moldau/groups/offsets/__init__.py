"""How far groups came: offsets that are committed, fetched, deleted and forgotten in time."""
