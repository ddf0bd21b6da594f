"""The parameters of functions that others wrote: of extensions, tools and strategies."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature whose annotations are not to be used: they may be texts.

    From Python 3.14 on they are worked out when they are asked for. One whose name is imported for type checkers only
    would fail there, though the function can be called. Raises what `inspect.signature` raises: `TypeError`, and
    `ValueError` for functions of C that have none.
    """
    if sys.version_info < (3, 14):
        return inspect.signature(function)
    from annotationlib import Format

    return inspect.signature(function, annotation_format=Format.STRING)
