"""What all protocols share: encoding, streams, tool calls, what is left out after a refusal."""
