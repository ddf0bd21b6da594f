"""Front-ends without a screen: print mode and the Agent Client Protocol server."""
