"""Notices outside the screen: bell, title, status command."""
