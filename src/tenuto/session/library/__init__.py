"""All sessions: the list, what is known of each, the trash."""
