"""Token estimates and text bounding. Imports nothing of ours."""
