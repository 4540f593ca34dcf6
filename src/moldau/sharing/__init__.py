"""Share groups' records: who has which one locked, how often it was delivered, what is done."""
