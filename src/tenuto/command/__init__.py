"""Slash commands, one file each, the same for every front-end."""
