"""The append-only log of a session and everything that is computed from it."""
