"""Consumer groups whose coordinator assigns (KIP-848)."""
