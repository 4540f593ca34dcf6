"""Clients of a world: each works as its users do, and notes in a ledger how that went."""
