"""The terminal: what it can do, what it answers, what is written to it."""
