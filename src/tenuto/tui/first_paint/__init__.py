"""First light: the frame, the prompt and the echo of keys while the front-end is still being imported.

Nothing here may import more than the interpreter already has, but for `select`, `termios` and `marshal`.
"""
