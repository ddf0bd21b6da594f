"""All sessions: the list, loading, forking, moving, the trash."""
