"""Files that one command finds and another one is given: `find -exec`, and `xargs` behind `find`, `grep -l`, `rg -l`.

Every file that could be handed over is looked at, as if its name stood in the line. `xargs` takes names apart at blanks
and newlines and takes quotes away, so that a name that somebody chose could become others: then a user decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from tenuto.guard.protected import below, secret_names
from tenuto.guard.readers.options import Argument, read_options, sort_operands
from tenuto.guard.readers.places import Asks, Place, check_kind, check_path
from tenuto.guard.readers.programs import GRAMMARS

MAX_FILES = 10_000
"""Directory entries that are looked at for one command; with more of them a user decides."""
FOUND = Argument(("./found",), is_many=True, is_pipe=True)
"""Stands for files that have been looked at, whose names do not begin with a `-`."""
_PLAIN = re.compile(r"[!#-&(-\[\]-~]+")
"""A name that `xargs` leaves as it is: ASCII without blanks, quotes and backslashes."""
_PATTERN = re.compile(r"[A-Za-z0-9_.*?-]+")
_EVERYWHERE = re.compile(r"\*/([A-Za-z0-9_.-]+)/\*")


class Sieve(msgspec.Struct, frozen=True):
    """What is known of files that `find` lets through; it lets through no others. `kind` is that of `-type`."""

    kind: str = ""
    name: re.Pattern[str] | None = None
    without: tuple[str, ...] = ()

    def fits(self, entry: os.DirEntry[str]) -> bool:
        """Whether a file may be let through."""
        if self.name is not None and not self.name.fullmatch(entry.name):
            return False
        match self.kind:
            case "f":
                return entry.is_file(follow_symlinks=False)
            case "d":
                return entry.is_dir(follow_symlinks=False)
            case _:
                return True


class Names(msgspec.Struct, frozen=True):
    """Names that a command prints or hands over: `starts`, and what lies below them, to `depth` levels.

    Where a start is empty, what lies in the working directory is named without anything in front. `ends_in_nul` says
    how names are told apart.
    """

    starts: tuple[str, ...]
    sieves: tuple[Sieve, ...] = (Sieve(),)
    depth: int = 1_000
    ends_in_nul: bool = False


class Find(msgspec.Struct):
    """What a command of `find` does. `files` are others that it looks at; `commands` what it runs on which files."""

    starts: list[Argument]
    files: list[Argument]
    depth: int
    prints: list[Sieve]
    commands: list[tuple[Sieve, list[Argument]]]
    ends_in_nul: bool
    prints_names: bool


_ALONE = frozenset(
    {
        *("-a", "-and", "-prune", "-empty", "-xdev", "-mount", "-depth", "-d", "-true", "-false", "-readable"),
        *("-writable", "-executable", "-quit", "-daystart", "-nouser", "-nogroup", "-noleaf"),
    }
)
_VALUED = frozenset(
    {
        *("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"),
        *("-regextype", "-type", "-size", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin"),
        *("-maxdepth", "-mindepth", "-perm", "-user", "-group", "-uid", "-gid", "-links", "-inum"),
        *("-lname", "-ilname", "-fstype", "-used", "-newermt", "-newerct", "-newerat"),
    }
)
_FILES = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def read_find(arguments: list[Argument]) -> Find:
    """Return what `find` looks at, prints and runs. Raises `Asks` for all else that it could do."""
    rest = list(arguments)
    if rest and rest[0].only == "-P":
        rest.pop(0)
    starts: list[Argument] = []
    while rest and not rest[0].may_be_option and rest[0].only not in ("!", "("):
        starts.append(rest.pop(0))
    reader = _FindReader(
        rest, Find(starts or [Argument((".",))], [], 1_000, [], [], ends_in_nul=True, prints_names=True)
    )
    return reader.read()


class _FindReader:
    """Goes through an expression from left to right. In brackets nothing is known of what is let through."""

    def __init__(self, rest: list[Argument], found: Find) -> None:
        self.rest = rest
        self.found = found
        self.sieve = Sieve()
        self.depth = 0
        self.has_branches = False

    def read(self) -> Find:
        negated = False
        while self.rest:
            word = self.rest.pop(0)
            if word.only in ("!", "-not"):
                negated = not negated
                continue
            self._part(word, negated=negated)
            negated = False
        found = self.found
        if not found.prints and not found.commands and found.prints_names:
            found.prints.append(Sieve() if self.has_branches else self.sieve)
            found.ends_in_nul = False
        return found

    def _part(self, word: Argument, *, negated: bool) -> None:
        match word.only:
            case "(" | ")":
                self.depth += 1 if word.only == "(" else -1
            case "-o" | "-or" | "," if self.depth:
                pass
            case "-o" | "-or" | ",":
                self.has_branches = True
                self.sieve = Sieve()
            case "-print" | "-print0":
                self.found.prints.append(self._known())
                self.found.ends_in_nul &= word.only == "-print0"
            case "-ls" | "-printf":
                self.found.prints_names = False
                if word.only == "-printf":
                    self._value()
            case "-exec":
                self.found.commands.append((self._known(), self._command()))
            case only if only in _VALUED:
                self._test(only or "", self._value(), negated=negated)
            case only if only in _FILES and self.rest:
                self.found.files.append(self.rest.pop(0))
            case _ if word.is_many and word.texts and not word.may_be_option:
                self.found.files.append(word)  # a pattern without quotes: find will complain where there are several
            case only if only not in _ALONE:
                raise Asks(f"has a part that is not known: {only or '…'}")
            case _:
                pass

    def _known(self) -> Sieve:
        return Sieve() if self.depth else self.sieve

    def _value(self) -> Argument:
        if not self.rest:
            raise Asks("has a test without its value")
        value = self.rest.pop(0)
        if value.is_many:
            self.found.files.append(value)
        return value

    def _test(self, name: str, value: Argument, *, negated: bool) -> None:
        text = value.only or ""
        if name == "-maxdepth" and re.fullmatch("[0-9]{1,2}", text):
            self.found.depth = min(self.found.depth, int(text))
        if self.depth:
            return
        if negated:
            match = _EVERYWHERE.fullmatch(text) if name == "-path" else None
            without = (*self.sieve.without, match[1]) if match else self.sieve.without
            self.sieve = msgspec.structs.replace(self.sieve, without=without)
        elif name == "-type" and text in ("f", "d"):
            self.sieve = msgspec.structs.replace(self.sieve, kind=text)
        elif name in ("-name", "-iname") and _PATTERN.fullmatch(text):
            pattern = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in text)
            compiled = re.compile(pattern, re.DOTALL | (re.IGNORECASE if name == "-iname" else 0))
            self.sieve = msgspec.structs.replace(self.sieve, name=compiled)

    def _command(self) -> list[Argument]:
        """Return the words of `-exec`, with `FOUND` in the place of `{}`."""
        words: list[Argument] = []
        while self.rest:
            word = self.rest.pop(0)
            if word.only == ";" or (word.only == "+" and words and words[-1] is FOUND):
                if words and words[0] is not FOUND:
                    return words
                break
            words.append(_put_in(word, "{}"))
        raise Asks("has a command for find that is not plain")


def _put_in(word: Argument, mark: str) -> Argument:
    """Return what a word becomes when files are put in the place of a mark. Raises `Asks` where it is a part of one."""
    if word.only == mark:
        return FOUND
    if not word.texts or any(mark in text for text in word.texts):
        raise Asks("puts names of files into other words")
    return word


def find_names(found: Find, sieves: tuple[Sieve, ...]) -> Names:
    """Return which names `find` has for files that these sieves let through."""
    if any(not start.texts for start in found.starts):
        raise Asks("looks for files in a place that is not known")
    starts = tuple(text for start in found.starts for text in start.texts)
    return Names(starts, sieves, found.depth, found.ends_in_nul)


_LISTING = {
    "grep": frozenset(
        {
            *(
                "-r",
                "-l",
                "-L",
                "-i",
                "-n",
                "-E",
                "-F",
                "-G",
                "-P",
                "-w",
                "-x",
                "-s",
                "-e",
                "-I",
                "-a",
                "-v",
                "-H",
                "-h",
            ),
            *("--include", "--exclude", "--exclude-dir", "--recursive", "--ignore-case", "--files-with-matches"),
            *("--files-without-match", "--extended-regexp", "--fixed-strings", "--perl-regexp", "--word-regexp"),
            *("--no-messages", "--line-number", "--regexp"),
        }
    ),
    "rg": frozenset(
        {
            *("-l", "-i", "-n", "-F", "-w", "-S", "-s", "-U", "-u", "-e", "-g", "-t", "-T", "-H", "--files"),
            *("--files-with-matches", "--files-without-match", "--ignore-case", "--smart-case", "--fixed-strings"),
            *("--word-regexp", "--glob", "--iglob", "--type", "--type-not", "--hidden", "--no-ignore", "--regexp"),
            "--no-messages",
        }
    ),
}
"""Options with which these print nothing but names, one a line, if one of those for names is among them."""
_LISTS = frozenset({"-l", "-L", "--files-with-matches", "--files-without-match", "--files"})


def printed_names(name: str, arguments: list[Argument], cwd: str) -> Names:
    """Return which names of files a command prints. Raises `Asks` where it prints other things."""
    if name == "find":
        found = read_find(arguments)
        if found.commands or not found.prints_names:
            raise Asks("hands over names that are not known")
        return find_names(found, tuple(found.prints))
    known = _LISTING.get("grep" if name in ("egrep", "fgrep") else name)
    if known is None:
        raise Asks("hands over names that are not known")
    read = read_options(GRAMMARS[name], arguments, cwd)
    sort_operands(GRAMMARS[name], read)
    options = set(read.options)
    if not options <= known or not options & _LISTS or any(path.is_pipe or not path.texts for path in read.paths):
        raise Asks("hands over names that are not known")
    texts = tuple(text for path in read.paths for text in path.texts)
    if not texts and name != "rg" and not options & {"-r", "--recursive"}:
        raise Asks("hands over names that are not known")
    return Names(texts or ("",))


_PASSING = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), frozenset({"-v", "-i", "-E", "-F", "-P", "-w", "-x", "-e"})),
    "sort": frozenset({"-u", "-r", "-n", "-V", "-f", "--unique", "--reverse"}),
    "uniq": frozenset({"-u", "-d"}),
    **dict.fromkeys(("head", "tail"), frozenset({"-n", "--lines"})),
}


def only_passes_on(name: str, arguments: list[Argument], cwd: str) -> bool:
    """Whether a command prints some of the lines that it reads from a pipe, each as it is."""
    known = _PASSING.get(name)
    if known is None:
        return False
    read = read_options(GRAMMARS[name], arguments, cwd)
    sort_operands(GRAMMARS[name], read)
    return set(read.options) <= known and not read.paths


_XARGS_FLAGS = re.compile(r"-([0rtx]*)(?:[nLP][0-9]{1,4})?|--(null|no-run-if-empty|max-(?:args|procs|lines)=[0-9]+)")
_XARGS_VALUED = frozenset({"-n", "-L", "-P", "-I", "-d"})


class Xargs(msgspec.Struct):
    """What `xargs` runs, with `FOUND` where names go, and whether it takes names to end in NUL."""

    words: list[Argument]
    ends_in_nul: bool = False


def read_xargs(arguments: list[Argument]) -> Xargs:
    """Return what `xargs` runs. Raises `Asks` for options that are not known."""
    rest, mark, ends_in_nul = list(arguments), "", False
    while rest and (option := rest[0].only or "").startswith("-"):
        rest.pop(0)
        if option in _XARGS_VALUED and rest:
            value = rest.pop(0).only or ""
            if option == "-I":
                mark = value
            if not re.fullmatch({"-I": r"[{}%@A-Z]+", "-d": r"\\n|\n"}.get(option, "[0-9]{1,4}"), value):
                raise Asks("gives xargs an option with a value that is not known")
        elif option.startswith("-I") and re.fullmatch(r"[{}%@A-Z]+", option[2:]):
            mark = option[2:]
        elif match := _XARGS_FLAGS.fullmatch(option):
            ends_in_nul |= "0" in (match[1] or "") or match[2] == "null"
        else:
            raise Asks(f"gives xargs an option that is not known: {option}")
    if not rest or not rest[0].only:
        raise Asks("runs xargs without a program that is named plainly")
    words = [_put_in(word, mark) for word in rest] if mark else [*rest, FOUND]
    return Xargs(words, ends_in_nul)


_TAKE_FILES = frozenset({"paths", "pattern", "script", "texts"})


def read_handed(words: list[Argument], cwd: str) -> list[Argument]:
    """Return the files that a command opens besides those that it is handed. Raises `Asks` for one that does more."""
    name = words[0].only or ""
    if name == "echo":
        return [word for word in words[1:] if word.is_many]
    grammar = GRAMMARS.get(name)
    if grammar is None or grammar.operands not in _TAKE_FILES or grammar.compares:
        raise Asks(f"runs {name or 'a program that is not named plainly'} on files that are found")
    read = read_options(grammar, words[1:], cwd)
    sort_operands(grammar, read)
    return read.paths


def check_names(names: Names, cwd: str, place: Place, *, exactly: bool) -> None:
    """Raises `Asks` where a file may not be read unasked, or has a name that may become others on the way.

    `exactly` says that every name arrives as it is.
    """
    budget = _Budget()
    for start in names.starts:
        if start.startswith("-") or not (exactly or not start or _PLAIN.fullmatch(start)):
            raise Asks(f"hands over a name that may become others: {start}")
        path = check_path(start or ".", cwd, place)
        root = place.root_of(path)
        for entry, is_plain, is_first in _walk(path, names, budget):
            if not is_plain and not exactly:
                raise Asks(f"hands over a name that may become others: {entry.path!r}")
            if not start and is_first and re.match(r"-|.*=", entry.name):
                raise Asks(f"hands over a name that may be more than a name: {entry.name}")
            if entry.is_symlink():
                check_path(entry.path, cwd, place)
            elif not entry.is_dir(follow_symlinks=False):
                check_kind(entry.path, entry.stat(follow_symlinks=False), place)
                if secret_names(entry.name) or _holds_keys(os.path.dirname(entry.path), root):  # noqa: PTH120
                    raise Asks(f"reads {entry.path}, which holds keys")


@lru_cache(maxsize=1_024)
def _holds_keys(folder: str, root: str) -> bool:
    """Whether a folder is one for keys, or lies in one: told by its name."""
    return bool(secret_names(below(f"{folder}/x", root)))


class _Budget:
    left = MAX_FILES


def _walk(path: str, names: Names, budget: _Budget) -> Iterator[tuple[os.DirEntry[str], bool, bool]]:
    """Yield what may be handed over, whether its path is plain from the start on, and whether it lies there itself."""
    pending = [(path, True, 1)]
    first, *others = names.sieves
    without = set(first.without).intersection(*(sieve.without for sieve in others))
    while pending:
        directory, was_plain, depth = pending.pop()
        try:
            entries = os.scandir(directory)
        except OSError:
            continue
        with entries:
            for entry in entries:
                budget.left -= 1
                if budget.left < 0:
                    raise Asks("hands over files from among very many")
                if depth < names.depth and entry.is_dir(follow_symlinks=False) and entry.name not in without:
                    pending.append((entry.path, was_plain and bool(_PLAIN.fullmatch(entry.name)), depth + 1))
                for sieve in names.sieves:
                    if sieve.fits(entry):
                        yield entry, was_plain and bool(_PLAIN.fullmatch(entry.name)), depth == 1
                        break
