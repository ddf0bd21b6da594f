"""Images for a prompt."""
