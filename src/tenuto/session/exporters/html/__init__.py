"""The HTML export: one file that asks for nothing and runs nothing but its own script."""
