"""Streams: apps whose queries lead from topic to topic, exactly once."""
