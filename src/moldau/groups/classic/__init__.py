"""Classic groups: members choose a leader, and the leader says who reads what."""
