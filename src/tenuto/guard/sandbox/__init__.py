"""The sandbox: what a command of the model may write, read and reach, said as data, and what of this machine holds it."""
