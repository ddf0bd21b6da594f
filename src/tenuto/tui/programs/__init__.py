"""Other programs in the terminal: editor, pager."""
