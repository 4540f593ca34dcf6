"""The controller: commands in, metadata records and answers out; replay alone changes its state."""
