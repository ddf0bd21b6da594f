"""Tools of MCP servers: connections, names, results. `mcp` itself is imported in a thread, where servers are."""
