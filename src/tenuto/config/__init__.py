"""Settings and instruction files."""
