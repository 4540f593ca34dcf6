"""A partition's history on disk, in Kafka's formats; synchronous, over the Disk port."""
