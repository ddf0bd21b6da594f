"""What a running session has: settings, model, pins, approvals, reminders, the next request."""
