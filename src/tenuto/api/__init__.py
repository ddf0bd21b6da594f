"""The Python API: a session as an object. Print mode, batches and editors stand on it as programs do."""
