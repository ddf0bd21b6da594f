"""The inline front-end: what is final goes into the terminal's own scrollback, the rest is a few rows at the bottom."""
