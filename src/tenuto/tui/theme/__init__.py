"""Themes as they are chosen, loaded and painted."""
