"""Names and errors that every layer shares; imports nothing of the project."""
