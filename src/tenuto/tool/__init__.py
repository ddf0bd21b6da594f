"""The tools that a model can call, one file each, and what several of them use."""
