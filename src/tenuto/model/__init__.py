"""Model clients over four wire formats, and the built-in offline model."""
