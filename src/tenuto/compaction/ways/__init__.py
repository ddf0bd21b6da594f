"""The ladder and its rungs, and what foreign strategies return."""
