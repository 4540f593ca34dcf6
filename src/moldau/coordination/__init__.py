"""What coordinators have in common: decisions, their records in an internal topic, refusals."""
