"""Changing files: encodings, matching, diffs."""
