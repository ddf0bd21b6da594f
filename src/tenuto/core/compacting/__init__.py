"""Compactions as the session runs them: the one procedure that writes, and what it is given."""
