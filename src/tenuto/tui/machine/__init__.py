"""The pure state machine: events and intents in, state and effects out."""
