"""The benchmark: what is started, where it is watched, what is measured, how it is shown.

Everything is measured from outside: a pseudo-terminal, the records of a model server in a process of its own, /proc.
Programs take turns, so that a busy moment of the machine hits all of them; figures are medians of several runs.
"""
