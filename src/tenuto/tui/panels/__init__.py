"""What opens around the editor, as lines: approvals, lists to pick from, completions, queue, todo, help. Pure."""
