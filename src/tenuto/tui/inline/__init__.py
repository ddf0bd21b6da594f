"""The inline front-end: what is final goes into the terminal's own scrollback, the rest is a few rows at the bottom."""

from __future__ import annotations

from importlib import import_module

from tenuto.tui.late_modules import late_modules

_NOT_NEEDED = {
    "prompt_toolkit.shortcuts": ("PromptSession", "choice", "print_formatted_text", "prompt"),
    "secrets": (),
    "shutil": (),
    "tempfile": (),
    "prompt_toolkit.formatted_text.html": ("HTML", "html_escape"),
}
"""Dialogs, HTML, an editor of its own: 10 ms of imports that no prompt of ours needs."""

with late_modules(_NOT_NEEDED):
    import_module("prompt_toolkit")
