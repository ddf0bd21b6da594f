"""Keys: their names, what they are bound to, the key file, a line of text."""
