"""Apps to begin with: files that run as they are."""
