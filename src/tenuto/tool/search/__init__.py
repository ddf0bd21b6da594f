"""Searching files, with ripgrep or without."""
