"""Sessions as files: HTML, Markdown, JSON lines, trajectories. Entries go in, text comes out; nothing is changed."""
