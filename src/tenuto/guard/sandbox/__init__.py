"""The sandbox: what a command of the model may write, read and reach, as data, and what holds it here."""
