"""Entries as events again: a resumed session, older pages, a search."""
