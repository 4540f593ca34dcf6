"""Share groups' records: which member has each locked, how often it was delivered, what is done."""
