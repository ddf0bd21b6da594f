"""Front-ends without a screen: print mode, one event a line, and editors (`acp`)."""
