"""What things cost, as numbers that are the same on every machine: a regression in growth fails here, time never does.

Each test does a thing at one size and at ten times that size, and counts: entries decoded, bytes written, calls of
Python, widgets, system calls, files opened. It says whether the number may not grow at all or how much for each item.
The other counts of this kind: what is imported when (`tests/test_imports.py`), how large the first request is
(`tests/cli/test_first_request.py`), what a long session reads (`tests/core/test_long_session.py`).
"""
