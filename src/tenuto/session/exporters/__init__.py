"""Sessions as files for other eyes: HTML, Markdown, JSON lines. Entries go in, text comes out; nothing is changed."""
