"""Notes from data alone: the ledger of what the user said, the digest, file lists."""
