"""What travels between the rooms: messages, entries, events, operations. Imports nothing of ours."""
