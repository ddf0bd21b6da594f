"""What stands around the transcript: status, footer, marks, titles."""
