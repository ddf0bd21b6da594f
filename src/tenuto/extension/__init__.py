"""Hooks, skills and MCP servers."""
