"""The words of generated sessions: what people and models say, and what tools print, in sets to choose from."""
