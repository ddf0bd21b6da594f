"""Sessions of other agents, read from their own files into a session that can be continued.

`builder.py` is what the formats share: pieces in, entries with right references out. One file a format turns lines into
pieces, without I/O; `import_session.py` reads the source, never writes to it, and makes the session.
"""
