"""Token estimates, bounded text, figures as users read them. Imports nothing of ours."""
