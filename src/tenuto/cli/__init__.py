"""Argument parsing and subcommands; a front-end is imported only when it is needed."""
