"""What a cluster knows about itself: its settings, and the image of its topics and brokers."""
