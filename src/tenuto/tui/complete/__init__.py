"""Sources of completion, prompt history, folding of pastes: what both front-ends offer while typing."""
