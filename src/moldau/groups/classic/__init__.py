"""Classic groups: members choose a leader, and the leader assigns the partitions."""
