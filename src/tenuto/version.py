"""The version: a constant, because asking the installed package's metadata costs 24 ms at every start."""

__version__ = "0.1.0"
