"""Settings, trust, instruction files, saved approvals."""
