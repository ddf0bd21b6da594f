"""A turn of the agent: steps, calls, and what goes along with a prompt."""
