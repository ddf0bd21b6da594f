"""The Python API: an agent as an object, and what print mode shares with it: what came of a prompt, answers as JSON."""
