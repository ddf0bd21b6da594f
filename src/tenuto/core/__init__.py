"""The executor, its one task manager, and the operations of a session."""
