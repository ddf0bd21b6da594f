"""Front-ends without a screen: print mode, and one event a line."""
