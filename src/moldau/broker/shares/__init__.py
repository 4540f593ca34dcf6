"""Records for share groups: sessions of their members, and partitions that are led here."""
