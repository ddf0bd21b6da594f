"""The append-only log: entries on disk, their index, the lock."""
