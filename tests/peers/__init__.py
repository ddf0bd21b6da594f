"""Tests of `scripts/bench peers`: what it computes, and one small run of it from end to end."""
