"""What machine and screens share, as data: the state, its items, intents that go in, effects that come out."""
