"""Laws that hold whatever goes wrong, for simulated and for real runs alike."""
