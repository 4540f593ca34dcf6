"""Views: the latest row of each key of a topic, kept in a local file that can be asked."""
