"""Other people's clients behind one small interface, so that one set of tests asks all of them."""
