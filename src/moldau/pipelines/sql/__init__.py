"""SQL on topics: what is declared, what is asked once, and what runs for ever."""
