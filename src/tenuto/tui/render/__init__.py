"""Items become lines of (text, style name), the same for both screens. Pure: no clock, no framework, no I/O."""
