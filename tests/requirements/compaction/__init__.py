"""The compaction requirements as tests of the whole agent against the scripted server, one or more a requirement."""
