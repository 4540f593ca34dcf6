"""What Kafka keeps in its internal topics and files: one module per place."""
