"""How a request gets its key: where keys are stored, and those that are fetched when they are needed."""
