"""Making the view smaller: meter, plan, serialiser, prompts, ladder."""
