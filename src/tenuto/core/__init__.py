"""What runs a session: the executor with its one task, opening and moving, entries as events."""
