"""What a user can ask of the offline model, as data."""

from __future__ import annotations

import msgspec


class Greet(msgspec.Struct, frozen=True):
    """Say who this is and what it can do."""


class Help(msgspec.Struct, frozen=True):
    """Say what can be asked for and how a real model is connected."""


class Thanks(msgspec.Struct, frozen=True):
    """Take a thank-you."""


class Unknown(msgspec.Struct, frozen=True):
    """Nothing that the rules know."""

    text: str


class Look(msgspec.Struct, frozen=True):
    """List what is in a directory; empty: the working directory."""

    path: str = ""


class Read(msgspec.Struct, frozen=True):
    """Read a file; lines count from 1, 0 means from the start or to the end."""

    path: str
    first: int = 0
    last: int = 0


class Search(msgspec.Struct, frozen=True):
    """Search file contents for `pattern`, as it is or as a regular expression; `path` may be empty."""

    pattern: str
    path: str = ""
    regular: bool = False


class FindFiles(msgspec.Struct, frozen=True):
    """Find files by name; `pattern` is a glob."""

    pattern: str
    path: str = ""


class Run(msgspec.Struct, frozen=True):
    """Run a shell command."""

    command: str


class RunTests(msgspec.Struct, frozen=True):
    """Find out how the project's tests are run, and run them."""


class Replace(msgspec.Struct, frozen=True):
    """Replace a text in a file, everywhere or in its one place."""

    old: str
    new: str
    path: str
    everywhere: bool = False


class Create(msgspec.Struct, frozen=True):
    """Write a file."""

    path: str
    text: str


class Explain(msgspec.Struct, frozen=True):
    """Explain the newest failure."""


class ShowTodo(msgspec.Struct, frozen=True):
    """Show the todo list."""


class AddTodo(msgspec.Struct, frozen=True):
    """Add lines to the todo list."""

    texts: tuple[str, ...]


class FinishTodo(msgspec.Struct, frozen=True):
    """Mark lines of the todo list as done, by number (from 1) or by a part of their text; `0`: all."""

    which: tuple[int | str, ...]


Wish = (
    Greet
    | Help
    | Thanks
    | Unknown
    | Look
    | Read
    | Search
    | FindFiles
    | Run
    | RunTests
    | Replace
    | Create
    | Explain
    | ShowTodo
    | AddTodo
    | FinishTodo
)
