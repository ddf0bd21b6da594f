"""Front-ends without a screen: print mode, one event a line, and editors (`acp`)."""

from importlib import import_module

from tenuto.import_tricks import late_modules

with late_modules({"ssl": (), "asyncio.sslproto": ()}, kinds={"ssl": ("SSLSocket",)}):
    # TLS, which the first https address imports: 4 ms for a server on this machine, and before a request to any other.
    import_module("asyncio")
