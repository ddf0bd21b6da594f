"""What follows from the log: the path, the view, the tree, the folded state."""
