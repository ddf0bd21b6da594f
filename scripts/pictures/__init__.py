"""Pictures of the screen: cells to SVG, and the scenes that the documentation shows."""
