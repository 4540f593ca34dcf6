"""Running an app's queries: they are watched, started again when they fail, and stopped cleanly."""
