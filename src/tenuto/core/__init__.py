"""The executor, its one task manager, and the tasks that it runs."""
