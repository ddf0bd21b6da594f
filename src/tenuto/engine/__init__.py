"""Many jobs at once: where they run, in which order, what runs again, what is kept and shown of them."""
