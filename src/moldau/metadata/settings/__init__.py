"""Every Kafka setting, and ours: declared, parsed, checked, and shown with where it came from."""
