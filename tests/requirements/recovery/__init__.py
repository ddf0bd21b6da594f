"""Compaction that cannot fail, and that one can see, undo and recall."""
