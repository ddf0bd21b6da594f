"""Plugins: folders with skills, commands, agents, hooks and MCP servers that a user added as a whole."""
