"""Making the view smaller. Nothing here writes."""
