"""The network of a session: one namespace with a loopback, and a proxy that lets through what the user has listed."""
