"""What was promised, shown on the whole agent: each test carries the number of its requirement."""
