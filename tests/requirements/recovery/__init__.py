"""What issue 4 promises: compaction that cannot fail, and that one can see, undo and recall."""
