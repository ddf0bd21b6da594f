"""Moving to another place of the tree, with notes and files."""
