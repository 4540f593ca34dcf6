"""What a service remembers: relations and queries, in a topic, for one owner."""
