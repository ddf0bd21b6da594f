"""Running a tool: registry, arguments, context, bounds of results."""
