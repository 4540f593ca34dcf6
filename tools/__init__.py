"""Programs that make or check what the repository holds; none is needed at run time."""
