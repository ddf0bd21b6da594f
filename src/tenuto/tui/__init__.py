"""The interactive front-ends: one pure machine, one render layer, two screens."""
