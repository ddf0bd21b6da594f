"""The OpenAI protocols: Responses and Chat Completions."""
