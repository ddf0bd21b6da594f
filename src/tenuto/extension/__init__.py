"""Python extensions and their hooks."""
