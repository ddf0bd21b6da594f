"""What a compaction would do: the cut, what is shortened, what it is given."""
