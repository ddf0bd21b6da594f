"""Where a line plainly writes to, for mode `auto`: it stops accidents, and not someone who hides. It is no sandbox."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, zip_longest

from tenuto.guard.protected import below, protected_names
from tenuto.guard.shell.parse import nodes_in, read_line, redirections_of
from tenuto.guard.shell.rules import writes_elsewhere
from tenuto.guard.shell.syntax import For, Simple, Text, Variable, Word
from tenuto.guard.shell.syntax import Sequence as Commands
from tenuto.guard.subject import is_inside

_SCRATCH = ("/tmp", "/var/tmp", "/private/tmp")
_SCRATCH_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_ALL_OPERANDS = frozenset(
    {
        *("rm", "rmdir", "unlink", "shred", "mv", "tee", "touch", "mkdir", "chmod", "chown", "chgrp", "truncate"),
        *("mkfifo", "mknod", "setfacl", "chattr", "swapoff", "fallocate"),
    }
)
_LAST_OPERAND = frozenset({"cp", "ln", "install", "rsync", "scp"})
_PREFIXES: dict[str, str] = {
    **dict.fromkeys(("command", "exec", "nohup", "setsid", "time", "builtin", "eval", "caffeinate"), ""),
    "sudo": "ugpCDhRrTt",
    "doas": "uC",
    "env": "uCS",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "ks",
    "stdbuf": "ioe",
    "xargs": "IinLPsdaE",
    "parallel": "jIaS",
}
"""Programs that run another one, and their short options that take a value."""
_SHELLS = re.compile(r"(?:ba|da|z|k)?sh")
_NAMED_PLACES: dict[str, re.Pattern[str]] = {
    "cp": re.compile(r"-t|--target-directory"),
    "mv": re.compile(r"-t|--target-directory"),
    "ln": re.compile(r"-t|--target-directory"),
    "install": re.compile(r"-t|--target-directory"),
    "curl": re.compile(r"-o|--output|--output-dir|-D|--dump-header|-c|--cookie-jar"),
    "wget": re.compile(r"-O|--output-document|-P|--directory-prefix|-o|--output-file"),
    "tar": re.compile(r"-C|--directory|-f|--file|-[a-z]*c[a-z]*f"),
    "unzip": re.compile(r"-d"),
    "sort": re.compile(r"-o|--output"),
    "gcc": re.compile(r"-o"),
    "git": re.compile(r"-C|--git-dir|--work-tree|--output"),
    "make": re.compile(r"-C|--directory"),
    "pip": re.compile(r"-t|--target|--prefix|--root"),
    "npm": re.compile(r"--prefix|-C"),
}
"""Options whose value is a place that is written to."""


def outside_writes(source: str, roots: Sequence[str], cwd: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places outside the workspace, and the protected ones, that a line plainly writes to, as written.

    Links are followed. What cannot be told, but is written to, counts as outside. A line that is not understood has
    none: ask for it by its `problem`.
    """
    line = read_line(source)
    finder = _Finder(roots, environ, source, {cwd})
    finder.look(line.body)
    return tuple(dict.fromkeys(finder.found))


class _Finder:
    def __init__(self, roots: Sequence[str], environ: Mapping[str, str], source: str, places: set[str | None]) -> None:
        self.roots = roots
        self.environ = environ
        self.source = source
        self.places = places
        """Directories in which the shell can be, `None` among them where nobody knows."""
        self.found: list[str] = []
        self.values: dict[str, list[Word]] = {}

    def look(self, body: Commands) -> None:
        nodes = list(nodes_in(body))
        for node in nodes:
            if isinstance(node, Simple):
                for assignment in node.assignments:
                    self.values.setdefault(assignment.name, []).append(assignment.value)
            elif isinstance(node, For):
                self.values.setdefault(node.name, []).extend(node.words or ())
        for node in nodes:
            for redirection in redirections_of(node):
                if writes_elsewhere(redirection) and not (redirection.target.value or "x").isdigit():
                    self._note(redirection.target)
            if isinstance(node, Simple):
                self._command(list(node.words))

    def _command(self, words: list[Word]) -> None:
        words = list(_without_prefixes(words))
        if not words:
            return
        name = os.path.basename(words[0].value or "")  # noqa: PTH119 - a word, not a path on this machine
        if name in ("cd", "pushd"):
            self._enter(words[1:])
        elif _SHELLS.fullmatch(name) or name == "eval":
            self._inner(words[1:])
        for word in self._written(name, words[1:]):
            self._note(word)

    def _enter(self, words: list[Word]) -> None:
        operands = [word for word in words if not (word.value or "").startswith("-")]
        if any(word.value == "-" for word in words):
            return
        texts = self._texts(operands[0]) if operands else [self.environ.get("HOME", "/")]
        for place in list(self.places):
            for text in texts or [None]:
                is_known = text is not None and (place is not None or os.path.isabs(text))  # noqa: PTH117
                self.places.add(os.path.join(place or "/", text) if is_known and text is not None else None)  # noqa: PTH118

    def _inner(self, words: list[Word]) -> None:
        """The text of `bash -c`, wherever it stands among its words."""
        for word in words:
            text = word.value
            if text and re.search(r"[\s;]", text):
                inner = read_line(text)
                if inner.problem:
                    self.found.append(text)
                finder = _Finder(self.roots, self.environ, text, set(self.places))
                finder.values = dict(self.values)
                finder.look(inner.body)
                self.found += finder.found

    def _written(self, name: str, words: list[Word]) -> Iterator[Word]:
        operands = [word for word in words if not (word.value or "x").startswith("-")]
        yield from self._named(name, words)
        if name in _ALL_OPERANDS:
            yield from operands
        elif name in _LAST_OPERAND:
            yield from operands[-1:]
        elif name == "dd":
            yield from (_behind(word, 3) for word in operands if word.text.startswith("of="))
        elif (
            (name == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word.value or "") for word in words))
            or (name == "find" and any(re.match(r"-(delete|exec|ok|fprint|fls)", word.value or "") for word in words))
            or name.startswith("mkfs")
        ):
            yield from operands

    def _named(self, name: str, words: list[Word]) -> Iterator[Word]:
        options = _NAMED_PLACES.get(name)
        for word, following in zip_longest(words, words[1:]):
            text = word.text
            if options is None or not text.startswith("-"):
                continue
            if options.fullmatch(text):
                yield from [following] if following is not None else []
            elif (match := options.match(text)) and not text.startswith("--"):
                yield _behind(word, match.end())
            elif "=" in text and options.fullmatch(text.partition("=")[0]):
                yield _behind(word, text.index("=") + 1)

    def _note(self, word: Word) -> None:
        texts = self._texts(word)
        if texts is None or any(self._is_outside(text) for text in texts):
            self.found.append(self.source[word.start : word.end])

    def _texts(self, word: Word, depth: int = 0) -> list[str] | None:
        """Return what a word can be, `None` where nobody knows; patterns of files stay as they are."""
        if word.has_braces or depth > 3:
            return None
        choices: list[list[str]] = []
        for piece in word.pieces:
            if isinstance(piece, Text):
                choices.append([piece.text])
            elif isinstance(piece, Variable) and not piece.changed and piece.name in self.values:
                known = [self._texts(value, depth + 1) for value in self.values[piece.name]]
                if any(texts is None for texts in known):
                    return None
                choices.append([text for texts in known for text in texts or ()])
            elif isinstance(piece, Variable) and not piece.changed and self.environ.get(piece.name):
                choices.append([self.environ[piece.name]])
            else:
                return None
        texts = ["".join(chosen) for chosen in product(*choices)]
        if word.has_tilde:
            texts = [os.path.expanduser(text) for text in texts]  # noqa: PTH111
        return texts if len(texts) <= 100 else None

    def _is_outside(self, text: str) -> bool:
        if text in _SCRATCH_DEVICES:
            return False
        for place in self.places:
            if place is None and not os.path.isabs(text):  # noqa: PTH117
                return True
            path = os.path.realpath(os.path.join(place or "/", text))  # noqa: PTH118
            is_scratch = any(is_inside(path, scratch) for scratch in _SCRATCH)
            root = next((root for root in self.roots if is_inside(path, root)), "")
            if not (root or is_scratch) or protected_names(below(path, root or "/")):
                return True
        return False


def _behind(word: Word, count: int) -> Word:
    """Return a word without its first characters, as far as they are text."""
    first = word.pieces[0]
    if not isinstance(first, Text):
        return word
    return Word((Text(first.text[count:], first.quoted), *word.pieces[1:]), word.start, word.end)


def _without_prefixes(words: Sequence[Word]) -> Sequence[Word]:
    """Take programs that run another one from the front, with their options."""
    rest = list(words)
    while rest:
        name = os.path.basename(rest[0].value or "")  # noqa: PTH119
        values = _PREFIXES.get(name)
        if values is None or (name == "eval"):
            return rest
        rest.pop(0)
        while rest and re.match(r"-|[A-Za-z_]\w*=", rest[0].text):
            option = rest.pop(0).text
            if len(option) == 2 and option[0] == "-" and option[1] in values and rest:
                rest.pop(0)
        if name == "timeout" and rest:
            rest.pop(0)
    return rest
