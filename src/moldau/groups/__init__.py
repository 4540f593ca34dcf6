"""Groups of consumers: their members, what each member reads, and how far it came."""
