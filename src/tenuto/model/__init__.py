"""Model clients over three wire formats, and the built-in offline model."""
