"""Who reads which partition, decided by the coordinator."""
