"""Groups of consumers: who is in them, what each member reads, and how far it came."""
