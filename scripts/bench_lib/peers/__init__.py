"""`scripts/bench peers`: Tenuto beside other agents on the same machine, in the same minutes, against the same server.

A peer is a file in `programs/`: how to find it, what its own home needs, how it is started. Everything else is here.
"""
