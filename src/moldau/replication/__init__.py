"""The replicas of partitions that live on this broker."""
