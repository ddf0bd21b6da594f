"""What is known of models by their names: windows, output limits, prices. A snapshot, and fresher ones from the net."""
