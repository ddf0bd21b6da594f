"""Which commands only read, and only what may be read: a grammar for each program, and where its operands lead."""
