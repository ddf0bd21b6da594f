"""MCP servers as they are configured: files of ours and of other agents, read and written."""
