"""Python extensions and their hooks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.extension.api import ExtensionApi as Extension
    from tenuto.extension.registered import AskError, Model, Prompt, Result, ToolCall

__all__ = ["AskError", "Extension", "Model", "Prompt", "Result", "ToolCall"]


def __getattr__(name: str) -> object:
    """Resolve what an extension's author imports on first use: the package itself is imported at every start."""
    if name == "Extension":
        from tenuto.extension.api import ExtensionApi

        return ExtensionApi
    if name in __all__:
        from tenuto.extension import registered

        return getattr(registered, name)
    raise AttributeError(f"module 'tenuto.extension' has no attribute {name!r}")
