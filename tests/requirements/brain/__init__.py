"""What a frontier model is asked, told and given: what was seen to cost tasks (B1 to B15), on each protocol."""
