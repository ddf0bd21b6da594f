"""Transcript items to lines of (text, style name), shared by both screens."""
