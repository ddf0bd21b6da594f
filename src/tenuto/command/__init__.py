"""Slash commands, a file for each topic, the same for every front-end."""
