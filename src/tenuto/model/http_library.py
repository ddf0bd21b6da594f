"""Importing httpx without its command line.

`import httpx` also imports `httpx._main` with click, rich and pygments where click happens to be installed: 35 ms at
the first request for a program that nobody calls here.
"""

from __future__ import annotations

import sys
from types import ModuleType


def load_httpx() -> ModuleType:
    """Return the httpx module."""
    if "httpx" not in sys.modules and "click" not in sys.modules:
        sys.modules["click"] = None  # pyright: ignore[reportArgumentType] - makes `import click` fail, as httpx allows for
        try:
            import httpx
        finally:
            del sys.modules["click"]
        return httpx
    import httpx

    return httpx
