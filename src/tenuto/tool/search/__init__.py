"""Searching files and the session."""
