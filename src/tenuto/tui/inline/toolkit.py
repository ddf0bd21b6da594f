"""Importing prompt_toolkit without what no prompt of ours needs: dialogs, HTML, an editor of its own (10 ms)."""

from __future__ import annotations

from importlib import import_module

from tenuto.import_tricks import late_modules

_NOT_NEEDED = {
    "prompt_toolkit.formatted_text.html": ("HTML", "html_escape"),
    "prompt_toolkit.shortcuts": ("PromptSession", "choice", "print_formatted_text", "prompt"),
    "secrets": (),
    "shutil": (),
    "tempfile": (),
}


def import_toolkit() -> None:
    """Be the first to import prompt_toolkit."""
    with late_modules(_NOT_NEEDED):
        import_module("prompt_toolkit")
