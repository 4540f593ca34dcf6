"""What groups of the newer protocols have in common: assignments, assignors, drafts, deadlines."""
