"""Where words stand in a long log: an index beside it, made from it, and never believed without looking."""
