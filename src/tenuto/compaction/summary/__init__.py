"""Notes by a model: prompts, the transcript, the request, the judge, the new view."""
