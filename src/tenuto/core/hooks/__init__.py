"""Hook commands in a session: run through the door for processes, asked at events, their answers carried out."""
