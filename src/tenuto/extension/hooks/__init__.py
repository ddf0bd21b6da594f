"""Hook commands: programs of the user's that are asked at events, in the shape that other agents have too."""
