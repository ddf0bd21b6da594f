"""`tenuto batch`: many headless agents, each with a session and a git worktree of its own."""
