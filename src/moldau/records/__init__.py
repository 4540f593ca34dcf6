"""Record batches: building, reading, compression and the older formats."""
