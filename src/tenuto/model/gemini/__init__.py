"""Google's Gemini protocol: `streamGenerateContent`."""
