"""How large things are: estimates, calibration, the budget of a window."""
