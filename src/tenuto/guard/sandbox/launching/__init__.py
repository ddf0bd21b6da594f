"""Starting commands: a process that waits for them, what stands over each, and what answers its system calls."""
